"""What the user sees while something runs: messages and progress bars."""

import contextlib
import os
from collections.abc import Generator
from dataclasses import dataclass

import tyro
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars
from rich.table import Table
from rich.text import Text

from ..progress import Progress, ProgressCallback

Switch = tyro.conf.FlagCreatePairsOff[bool]
"""A flag that is off unless it is given."""

out = Console(highlight=False, soft_wrap=True)
"""Results: standard output."""
err = Console(stderr=True, highlight=False, soft_wrap=True)
"""Progress and messages: standard error, so that results can be piped."""


def print_table(table: Table) -> None:
    """Prints a table; each row in one line where the output is piped."""
    console = out if out.is_terminal else Console(width=200, highlight=False)
    console.print(table)


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
            err.print(text, markup=False)

    def warn(self, text: str) -> None:
        """Tells the user something from a signal handler, in which only this is safe."""
        with contextlib.suppress(OSError):  # the terminal may have been closed
            os.write(2, f"\n{text}\n".encode())

    @contextlib.contextmanager
    def bars(self, *, count: ProgressColumn | None = None) -> Generator[ProgressCallback]:
        """A progress callback that draws one bar per stage, on terminals only.

        Args:
            count: How to show what is done of what there is; as two numbers by default.
        """
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=12),
            count or MofNCompleteColumn(),
            _Values(),
            TimeRemainingColumn(compact=True),
        )
        silent = self.quiet or not err.is_terminal
        with Bars(*columns, console=err, disable=silent) as bars:
            stages: dict[str, TaskID] = {}

            def show(progress: Progress) -> None:
                total = progress.total or None
                if progress.stage not in stages:
                    stages[progress.stage] = bars.add_task(progress.stage, total=total)
                bars.update(
                    stages[progress.stage],
                    completed=progress.done,
                    total=total,
                    values=progress.values,
                )

            yield show


class _Values(ProgressColumn):
    """Figures of the stage: loss, held-out accuracy."""

    def render(self, task: Task) -> Text:
        values = task.fields.get("values", {})
        shown = [
            f"{name.removesuffix(' accuracy')} {100 * value:.1f} %"
            if "accuracy" in name
            else f"{name} {value:.3f}"
            for name, value in values.items()
        ]
        return Text("  ".join(shown), style="cyan", no_wrap=True)
