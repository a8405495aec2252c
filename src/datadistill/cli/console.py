"""What the user sees while something runs: messages and progress bars."""

import contextlib
import logging
from collections.abc import Generator
from contextlib import AbstractContextManager
from dataclasses import dataclass

import tyro
from rich.progress import ProgressColumn
from rich.table import Table

from ..bars import PlainConsole, bars, err, say, say_now
from ..progress import ProgressCallback, silent

Switch = tyro.conf.FlagCreatePairsOff[bool]
"""A flag that is off unless it is given."""


out = PlainConsole()
"""Results: standard output."""


def print_table(table: Table) -> None:
    """Prints a table; each row in one line where the output is piped."""
    console = out if out.is_terminal else PlainConsole(width=200, soft_wrap=False)
    console.print(table)


class _Warnings(logging.Handler):
    """Prints what the library warns of, above progress bars."""

    def emit(self, record: logging.LogRecord) -> None:
        err.print(f"warning: {record.getMessage()}", markup=False)


@contextlib.contextmanager
def warnings_shown() -> Generator[None]:
    """Shows warnings on standard error, also where results alone are wanted (``--quiet``)."""
    logger, handler = logging.getLogger("datadistill"), _Warnings(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


@contextlib.contextmanager
def going_on() -> Generator[None]:
    """Tells after Ctrl-C that nothing is lost."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        raise type(interrupt)("run the same command to continue.") from None


@dataclass(frozen=True, kw_only=True)
class Common:
    """Flags that every command has."""

    quiet: Switch = False
    """Print results only, without progress bars and hints."""
    debug: Switch = False
    """Show the traceback of errors."""

    def say(self, text: str) -> None:
        """Tells the user what happens, unless ``--quiet``."""
        if not self.quiet:
            say(text)

    def warn(self, text: str) -> None:
        """Tells the user something from a signal handler."""
        say_now(text)

    def bars(
        self, *, count: ProgressColumn | None = None
    ) -> AbstractContextManager[ProgressCallback]:
        """A progress callback that draws one bar per stage; without a terminal, a line a minute.

        Args:
            count: How to show what is done of what there is; as two numbers by default.
        """
        return contextlib.nullcontext(silent) if self.quiet else bars(count=count)
