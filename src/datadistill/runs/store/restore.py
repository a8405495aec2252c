"""Opening a run folder, and checking that what is found there is the run to be resumed."""

import contextlib
from collections.abc import Generator
from dataclasses import dataclass

from ...core.distilled import Steps
from ...core.distiller import DistillerState
from ...durations import time_text
from ...errors import RunError
from ...lock import locked
from ..config import RunConfig, differences
from .checkpoint import Checkpoint, check_like, newest, path_of
from .fingerprint import check_fingerprint, rounding
from .folder import RunFolder

DEFAULTS = {"compiled": False, "engine": "fast"}
"""What settings stood for before they were recorded."""


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
            "Restore them to resume, or start a new run: datadistill distill RECIPE.",
        )
    reached = saved.state.outer_step
    if config.iterations < reached:
        raise RunError(
            f"{folder.path} is already at outer step {reached}.",
            f"Set iterations to {reached} or more.",
        )
    notes = check_fingerprint(saved.fingerprint, fingerprint)
    check_like(saved.state, like, distilled)
    for name in ("threads", "processes", "compiled", "engine"):
        before, now = getattr(saved.config, name), getattr(config, name)
        before = before or DEFAULTS.get(name)  # of runs that an earlier version began
        if before != now:
            notes.append(rounding(name, now, before))
    return notes


def resuming_from(saved: Saved, folder: RunFolder, iterations: int) -> str:
    """A sentence that says where a run resumes, and about how long it will take."""
    reached = saved.state.outer_step
    left = saved.state.seconds / max(reached, 1) * (iterations - reached)
    time_left = f", about {time_text(left)} left" if reached and left else ""
    file = path_of(folder.checkpoints, reached)
    return f"Resuming from outer step {reached:,} of {iterations:,}{time_left} ({file})."
