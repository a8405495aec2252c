"""The command line: ``datadistill COMMAND``."""

import contextlib
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import torch

from ..errors import ConfigError, DataDistillError
from ..runs.team.processes import is_worker, world_size
from ..version import __version__
from .console import err, out
from .distill import Distill
from .evaluate import Evaluate
from .parsing import parse, print_commands
from .pretrain import Pretrain
from .resume import Resume

INTERRUPTED = 130
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
    return _run(arguments)


def _run(arguments: list[str]) -> int:
    try:
        _carry_out(arguments)
    except BrokenPipeError as error:
        return UNREAD if _unread() else _report(error)
    except KeyboardInterrupt as interrupt:
        err.print(f"Interrupted; {str(interrupt) or 'nothing was written.'}", markup=False)
        return INTERRUPTED
    except Exception as error:
        if "--debug" in arguments:
            err.print(traceback.format_exc(), end="")
        return _report(error)
    return 0


def _carry_out(arguments: list[str]) -> None:
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
        command.run()
    finally:
        sys.stdout.flush()  # while it can be told that nobody reads it


def _report(error: Exception) -> int:
    """Prints an error in one or two lines; returns its exit code."""
    if isinstance(error, DataDistillError):
        err.print(f"error: {error.what}\n{error.remedy}", markup=False)
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
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and "allocate memory" in str(error)
