"""Progress bars and messages on a terminal or in a notebook; a line a minute anywhere else.

It imports rich, so the library imports it only where something is to be shown: see
:mod:`.showing`.
"""

import contextlib
import importlib.util
import os
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
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
from rich.segment import Segment
from rich.text import Text

from .durations import time_text
from .errors import printable
from .progress import Progress, ProgressCallback


class PlainConsole(Console):
    """Shows text as it is: no markup, no emoji codes, and control characters spelled out.

    What is shown may come from a file, e.g. the name of a class, and paths may have brackets.

    Args:
        stderr: Whether to write to standard error.
        width: Columns; those of the terminal by default.
        soft_wrap: Whether the terminal wraps long lines.
    """

    def __init__(
        self, *, stderr: bool = False, width: int | None = None, soft_wrap: bool = True
    ) -> None:
        super().__init__(
            stderr=stderr,
            width=width,
            soft_wrap=soft_wrap,
            markup=False,
            emoji=False,
            highlight=False,
        )

    def render_str(self, text: str, **options: Any) -> Text:
        """Turns a text into one that can be shown and measured."""
        return super().render_str(printable(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yields the pieces of what is shown; texts that rich made itself are checked here."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable(text), style, control)


err = PlainConsole(stderr=True)
"""Progress and messages: standard error, so that results can be piped."""


def say(text: str) -> None:
    """Tells the user what happens, above the bars."""
    err.print(text)


def say_now(text: str) -> None:
    """Tells the user something from a signal handler, in which only this is safe."""
    with contextlib.suppress(OSError):  # the terminal may have been closed
        os.write(2, f"\n{printable(text)}\n".encode())


@contextlib.contextmanager
def bars(*, count: ProgressColumn | None = None) -> Generator[ProgressCallback]:
    """A progress callback that draws one bar per stage; without a terminal, a line a minute.

    Args:
        count: How to show what is done of what there is; as two numbers by default.
    """
    if not (err.is_terminal or _in_notebook()):
        yield Lines(say)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=12),
        count or MofNCompleteColumn(),
        _Values(),
        TimeRemainingColumn(compact=True),
    )
    with Bars(*columns, console=err) as drawn:
        stages: dict[str, TaskID] = {}

        def show(progress: Progress) -> None:
            total = progress.total or None
            if progress.stage not in stages:
                stages[progress.stage] = drawn.add_task(printable(progress.stage), total=total)
            drawn.update(
                stages[progress.stage],
                completed=progress.done,
                total=total,
                values=progress.values,
            )

        yield show


def _in_notebook() -> bool:
    """Whether bars can be drawn in a notebook: rich needs ipywidgets for them."""
    return err.is_jupyter and importlib.util.find_spec("ipywidgets") is not None


class Lines:
    """Progress without a terminal: a line a minute tells how far a long call is.

    Args:
        say: Prints a line.
        seconds: Between two lines.
    """

    def __init__(self, say: Callable[[str], None], seconds: float = 60.0) -> None:
        self._say, self._seconds = say, seconds
        self._said, self._stage, self._first, self._began = time.monotonic(), "", 0, 0.0

    def __call__(self, progress: Progress) -> None:
        """Prints a line if the last one is old enough."""
        now = time.monotonic()
        if progress.stage != self._stage:
            self._stage, self._first, self._began = progress.stage, progress.done, now
        if now - self._said < self._seconds:
            return
        self._said = now
        parts = [f"{progress.stage}: {progress.done:,} of {progress.total:,}"]
        if (done := progress.done - self._first) > 0:
            left = (now - self._began) / done * (progress.total - progress.done)
            parts.append(f"about {time_text(left)} left")
        self._say(", ".join([*parts, *_figures(progress.values)]))


def _figures(values: Mapping[str, float]) -> list[str]:
    """Figures of a stage: loss, held-out accuracy."""
    return [
        f"{name.removesuffix(' accuracy')} {100 * value:.1f} %"
        if "accuracy" in name
        else f"{name} {value:.3f}"
        for name, value in values.items()
    ]


class _Values(ProgressColumn):
    """The figures of a stage, beside its bar."""

    def render(self, task: Task) -> Text:
        shown = _figures(task.fields.get("values", {}))
        return Text("  ".join(shown), style="cyan", no_wrap=True)
