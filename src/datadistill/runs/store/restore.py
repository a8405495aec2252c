"""Opening a run folder, and checking that what is found there is the run to be resumed."""

import contextlib
from collections.abc import Generator
from dataclasses import dataclass

from ...core.distilled import Steps
from ...core.distiller import DistillerState
from ...durations import time_text
from ...engine import EngineRecord
from ...errors import RunError
from ...lock import locked
from ..config import RunConfig, differences
from .checkpoint import Checkpoint, check_like, newest, path_of
from .fingerprint import check_fingerprint, rounding
from .folder import RunFolder

DEFAULTS = {"compiled": False, "engine": "fast"}
"""What settings stood for before they were recorded."""
SETTINGS = ("threads", "processes", "compiled", "engine")
"""Settings that change the last bits of a result."""
RECORDED = ("torch", "processor")
"""What the record of an engine says as well."""


@dataclass(frozen=True)
class Saved(Checkpoint):
    """The newest valid checkpoint of a run.

    Attributes:
        skipped: Why newer ones were skipped.
    """

    skipped: tuple[str, ...] = ()


@contextlib.contextmanager
def opened(folder: RunFolder) -> Generator[Saved | None]:
    """Locks a run folder and reads its newest checkpoint, if it holds a run.

    The checkpoint is read once, under the lock: no other process can be ahead of it.
    """
    folder.make()
    folder.check()
    with locked(folder.lock):
        folder.clean()
        yield None if folder.is_new else _newest(folder)


def _newest(folder: RunFolder) -> Saved:
    found, skipped = newest(folder.checkpoints)
    return Saved(**vars(found), skipped=tuple(skipped))


def check_same_run(
    saved: Saved,
    folder: RunFolder,
    config: RunConfig,
    fingerprint: dict[str, str],
    like: DistillerState,
    distilled: Steps,
) -> list[str]:
    """Refuses to resume a run with other settings, data or network.

    Args:
        saved: The checkpoint.
        folder: The run folder.
        config: The settings to resume with.
        fingerprint: The data and the network to resume with.
        like: A state whose tensors have the right shapes and types.
        distilled: Distilled data that have them.

    Returns:
        What differs and only changes rounding, one sentence each.
    """
    if changed := differences(saved.config, config):
        raise RunError(
            f"The settings differ from those of {folder.path}: {'; '.join(changed)}.",
            "Restore them to resume, or start a new run in another folder.",
        )
    reached = saved.state.outer_step
    if config.iterations < reached:
        raise RunError(
            f"{folder.path} is already at outer step {reached}.",
            f"Set iterations to {reached} or more.",
        )
    known = RECORDED if saved.state.engines else ()
    before = {name: one for name, one in saved.fingerprint.items() if name not in known}
    notes = check_fingerprint(before, fingerprint)
    check_like(saved.state, like, distilled)
    return notes


def other_engine(saved: Saved, config: RunConfig, now: EngineRecord) -> str:
    """What changes the last bits of what is still to be computed.

    Args:
        saved: The checkpoint.
        config: The settings to resume with.
        now: The engine to resume with.

    Returns:
        A text, empty if nothing differs.
    """
    if not saved.state.engines:
        return "\n".join(_of_settings(saved.config, config))
    before = saved.state.engines[-1]
    changed = before.differences(now)
    if not changed:
        return ""
    return (
        f"The engine differs from outer step {saved.state.outer_step + 1:,} on, which may change "
        f"the last bits of the result: {'; '.join(changed)}."
    )


def _of_settings(before: RunConfig, now: RunConfig) -> list[str]:
    """What differs from a run that an earlier version began, which recorded only settings."""
    found = ((n, getattr(before, n) or DEFAULTS.get(n), getattr(now, n)) for n in SETTINGS)
    return [rounding(name, is_, was) for name, was, is_ in found if was != is_]


def resuming_from(saved: Saved, folder: RunFolder, iterations: int) -> str:
    """A sentence that says where a run resumes, and about how long it will take."""
    reached = saved.state.outer_step
    left = saved.state.seconds / max(reached, 1) * (iterations - reached)
    time_left = f", about {time_text(left)} left" if reached and left else ""
    file = path_of(folder.checkpoints, reached)
    return f"Resuming from outer step {reached:,} of {iterations:,}{time_left} ({file})."
