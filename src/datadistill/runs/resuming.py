"""Resuming a run that was stopped: from Python and from the command line."""

import contextlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..artefact import DistilledData
from ..core.grad_mode import with_gradients
from ..errors import ConfigError, RunError
from ..given import typed
from ..hints import command
from ..progress import ProgressCallback, silent
from ..showing import Tell, no_message, shown, teller, urgent_teller
from . import experiment
from .config import RunConfig
from .experiment import CODE_SETTINGS, check_code_is_used, check_findable, check_no_code
from .run import Ended, Run
from .store.folder import RunFolder
from .store.restore import Saved, opened
from .store.yaml_files import read_config
from .team.processes import Processes

PATHS = ("data_dir", "pool", "weights")
CHANGES = ("iterations", *PATHS, "threads", "engine")
"""Settings that can be changed when a run is resumed; so can the number of processes."""

PLANNED = ("iterations", "decay_every", "validate_every", "plans")
"""Settings that a time budget may have changed when a run began."""

Team = Callable[[int], AbstractContextManager[Processes]]
"""Starts so many processes."""


@typed
@with_gradients
def resume(
    run: str | Path,
    *,
    iterations: int | None = None,
    progress: bool | ProgressCallback = False,
    tell: Tell | None = None,
    **settings: Any,
) -> DistilledData:
    """Resumes a run that was stopped, from its newest valid checkpoint.

    Args:
        run: The run folder.
        iterations: Outer steps in all, if more than planned.
        progress: True for a bar and messages, or a callback, called after every outer step.
        tell: Receives messages.
        settings: ``data_dir``, ``pool`` and ``weights``, if they have moved; ``threads``;
            ``engine``; and the Python code that the run uses, which runs only if you name it:
            ``model``, ``objective``, ``update_rule`` and so on.
    """
    for name in settings:
        if name not in (*CHANGES, *CODE_SETTINGS):
            raise ConfigError(
                f"{name} cannot be changed when a run is resumed from Python.",
                f"Leave it out. What can be given: {', '.join((*CHANGES, *CODE_SETTINGS))}.",
            )
    folder, given = RunFolder(Path(run)), {"iterations": iterations, **settings}
    with shown(progress) as show:
        return resume_run(
            folder,
            given,
            _this_process,
            tell=tell or teller(progress),
            warn=urgent_teller(progress),
            progress=show,
        ).distilled


def resume_run(
    folder: RunFolder,
    given: Mapping[str, Any],
    team: Team,
    *,
    tell: Tell = no_message,
    warn: Tell = no_message,
    progress: ProgressCallback = silent,
) -> Ended:
    """Resumes a run; its folder is locked and its checkpoint read once, before all else.

    Args:
        folder: The run folder.
        given: Settings to change, and the Python code that the user names; None for those that
            stay.
        team: Starts the processes of the run.
        tell: Receives messages.
        warn: Receives, from a signal handler, the message that the run is going to stop.
        progress: Called after every outer step.
    """
    _check_begun(folder)
    with opened(folder) as saved:
        assert saved is not None
        before = config_of_run(folder, saved)
        check_no_code(before, str(folder.config), given)
        check_findable(before, str(folder.config))
        check_code_is_used(before, str(folder.config), given)
        config = _changed(before, given)
        with team(config.processes or 1) as processes:
            if processes.size != before.processes:  # another division needs other threads
                config = replace(config, threads=given.get("threads"))
            loaded = experiment.load(config)
            run = Run(
                loaded.prepare(processes),
                folder,
                loaded.test,
                tell=tell,
                warn=warn,
                progress=progress,
            )
            return run.go_from(saved)


def config_of_run(folder: RunFolder, saved: Saved) -> RunConfig:
    """The configuration of a run; its checkpoint's, if the file has been deleted."""
    if not folder.config.exists():
        return saved.config
    try:
        return read_config(folder.config)
    except ConfigError as error:
        raise ConfigError(
            error.what, "Correct it, or delete it: it is restored from the checkpoint."
        ) from None


def as_planned(config: RunConfig, folder: RunFolder) -> RunConfig:
    """The settings with the schedule of a run that was begun in a folder, if one was."""
    if folder.is_new:
        return config
    with opened(folder) if not folder.config.exists() else contextlib.nullcontext() as saved:
        before = saved.config if saved else read_config(folder.config)
    return replace(config, **{name: getattr(before, name) for name in PLANNED})


def _changed(config: RunConfig, given: Mapping[str, Any]) -> RunConfig:
    changes = {n: v for n, v in given.items() if v is not None and n not in CODE_SETTINGS}
    changes |= {n: Path(changes[n]).absolute() for n in PATHS if n in changes}
    config = replace(config, **changes)
    config.check_division()
    return config


def _check_begun(folder: RunFolder) -> None:
    if not folder.path.is_dir():
        raise RunError(f"There is no run folder {folder.path}.", "Check the path.")
    if folder.is_new:
        raise RunError(
            f"There is no run in {folder.path}.",
            f"Start one there: {command('distill', 'RECIPE', '--run', folder.path)}",
        )


def _this_process(_processes: int) -> AbstractContextManager[Processes]:
    return contextlib.nullcontext(Processes())
