"""The command line: ``datadistill COMMAND``."""

import contextlib
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import ConfigError, DataDistillError, DataWarning
from ..runs.team.environment import is_worker, world_size
from ..runs.team.signals import Terminated, interruption, receiving
from ..version import __version__
from .console import err, out, warnings_shown
from .distill import Distill
from .evaluate import Evaluate
from .parsing import parse, print_commands
from .pretrain import Pretrain
from .resume import Resume

INTERRUPTED = 130  # by Ctrl-C
TERMINATED = 75  # EX_TEMPFAIL: by a scheduler's signal, which may start the command again
UNREAD = 1  # as rich ends


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if is_worker() and "--debug" not in arguments:  # process 0 speaks for all
        with (
            Path(os.devnull).open("w") as nowhere,
            contextlib.redirect_stdout(nowhere),
            contextlib.redirect_stderr(nowhere),
        ):
            return _run(arguments)
    with receiving(_interrupt):
        return _run(arguments)


def _interrupt(number: int) -> None:
    """Ends a command at once; a second signal of the kind ends one that hangs."""
    signal.signal(number, signal.SIG_DFL)
    raise interruption(number)


def _run(arguments: list[str]) -> int:
    try:
        _carry_out(arguments)
    except BrokenPipeError as error:
        return UNREAD if _unread() else _report(error)
    except KeyboardInterrupt as interrupt:
        err.print(f"Interrupted; {str(interrupt) or 'nothing was written.'}", markup=False)
        return TERMINATED if isinstance(interrupt, Terminated) else INTERRUPTED
    except Exception as error:
        if "--debug" in arguments:
            err.print(traceback.format_exc(), end="")
        return _report(error)
    return 0


def _carry_out(arguments: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always", DataWarning)
        warnings.showwarning = _show_warning
        _obey(arguments)


def _obey(arguments: list[str]) -> None:
    try:
        if arguments in (["--version"], ["version"]):
            out.print(f"datadistill {__version__}")
            return
        if arguments[:1] in (["-h"], ["--help"]):
            print_commands()
            return
        # Settings check themselves when they are made, so parsing may raise our errors too.
        command = parse(arguments)
        if world_size() > 1 and not isinstance(command, Distill | Resume | Evaluate | Pretrain):
            raise ConfigError(
                f"datadistill {arguments[0]} runs in one process.", "Start it without torchrun."
            )
        with warnings_shown():
            command.run()
    finally:
        sys.stdout.flush()  # while it can be told that nobody reads it


def _show_warning(message: Warning | str, *_where: Any) -> None:
    """Prints a warning in one line, without the line of code."""
    err.print(f"warning: {message}", markup=False)


def _report(error: Exception) -> int:
    """Prints an error in one or two lines; returns its exit code."""
    if isinstance(error, DataDistillError):
        err.print(f"error: {error.what}\n{error.remedy}".rstrip("\n"), markup=False)
        return error.exit_code
    if _out_of_memory(error):
        err.print(
            "error: Out of memory.\n"
            "Lower --batch-size, --networks or --images-per-class, or use --adjoint back-gradient."
        )
        return 1
    err.print(
        f"error: unexpected {type(error).__name__}: {error}\n"
        "Run again with --debug for the traceback, and please report it.",
        markup=False,
    )
    return 1


def _unread() -> bool:
    """Whether nobody reads our output any more, as of ``datadistill recipes | head -1``."""
    try:
        os.write(sys.stdout.fileno(), b"\n")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left, too
        return True
    return False


def _out_of_memory(error: Exception) -> bool:
    if not isinstance(error, RuntimeError):
        return isinstance(error, MemoryError)
    from torch import OutOfMemoryError

    return isinstance(error, OutOfMemoryError) or "allocate memory" in str(error)
