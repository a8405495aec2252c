"""What the user is told when a run stops before its end: what is saved, and how to resume."""

import contextlib
from collections.abc import Generator

from ..errors import FileError, TeamError
from .store.checkpoint import checkpoints_in
from .store.folder import RunFolder
from .store.state import RunState
from .team.processes import Processes
from .team.signals import interruption
from .team.stop import Stop


@contextlib.contextmanager
def resume_hint(folder: RunFolder, how: str) -> Generator[None]:
    """Adds to an error or an interrupt how to resume this run.

    Args:
        folder: The run folder.
        how: The command, or what to do in Python.
    """
    try:
        yield
    except FileError as error:
        if not folder.path.is_dir():
            raise FileError(
                f"The run folder {folder.path} was removed during the run.",
                "Start the run again in another folder.",
            ) from error
        if not _can_resume(folder):
            raise
        raise FileError(error.what, f"{error.remedy} Then resume: {how}") from error
    except TeamError as error:
        if not _can_resume(folder):
            raise
        raise TeamError(error.what, f"{error.remedy} To resume: {how}") from error
    except KeyboardInterrupt as interrupt:
        if not _can_resume(folder):
            raise type(interrupt)("nothing was saved.") from None
        what = str(interrupt) or "work since the last checkpoint will be repeated."
        raise type(interrupt)(f"{what}\nTo resume: {how}") from None


def _can_resume(folder: RunFolder) -> bool:
    """Whether there is a checkpoint; a run may be broken off before its first."""
    return bool(checkpoints_in(folder.checkpoints))


def stopped(state: RunState, stop: Stop) -> KeyboardInterrupt:
    """What to raise where a run stops because it was asked to."""
    return interruption(stop.signal)(f"outer step {state.outer_step:,} is saved.")


def left_alone(error: TeamError, state: RunState, stop: Stop) -> BaseException:
    """What to raise where another process has ended: it may have been stopped like this one."""
    if stop.requested:
        return stopped(state, stop)
    return TeamError(f"{error.what} Outer step {state.outer_step:,} is saved.", error.remedy)


def check_no_stop(team: Processes, state: RunState, stop: Stop) -> None:
    """After the last outer step, stops if that was requested since its sum."""
    try:
        team.sync()
    except TeamError as error:
        raise left_alone(error, state, stop) from error
    if team.agreed.stop:
        raise stopped(state, stop)
