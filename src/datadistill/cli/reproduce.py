"""``datadistill reproduce``: the tables and figures of the paper, made again from nothing."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import tyro
from rich.table import Table

from ..durations import parse_time, time_text
from ..errors import ConfigError, DataError
from ..files import check_writable, write_atomically
from ..runs.store.results import write_results
from ..tables.linear_settings import ITERATIONS
from .console import Common, going_on, out, print_table

if TYPE_CHECKING:
    from ..tables import LinearBound
    from ..tables.reproduction import Reproduced

LINEAR, ALL = "linear", "all"
ResultName = Literal[
    "mnist-cifar",
    "adaptation",
    "imagenet",
    "poisoning",
    "steps",
    "epochs",
    "one-vs-many",
    "learning-rate",
    "linear",
    "all",
]


@dataclass(frozen=True)
class Reproduce(Common):
    """Reproduce a table or figure of the paper, with the paper's figures beside ours.

    What is missing is run, what was broken off is resumed, and what is finished is kept. Every
    setting that differs from the paper's is listed. --scale quick proves in minutes that all works;
    --scale paper computes as much as the paper did, which takes days without a GPU.

    mnist-cifar, adaptation and imagenet are tables 1 to 3; poisoning, steps, epochs and one-vs-many
    are figures; learning-rate is from the supplement; linear is the bound of section 3.3.

    Examples:
        datadistill reproduce mnist-cifar --scale quick
        datadistill reproduce all --scale paper --time-budget 12h
    """

    result: tyro.conf.Positional[ResultName]
    """Table or figure to reproduce, or all of them."""
    scale: Literal["quick", "paper"] = "quick"
    """How much to compute: a few minutes for each, or as much as the paper."""
    time_budget: str | None = None
    """Finish within this time, e.g. 2h; runs that are not begun are planned for it."""
    data_dir: Path | None = None
    """Data folder. By default $DATADISTILL_DATA, or the user's cache folder."""
    output: Path | None = None
    """Folder for tables, runs and pools. By default reproduce-SCALE."""
    threads: int | None = None
    """CPU threads. By default as many as torch takes."""
    iterations: int = ITERATIONS
    """Of linear: outer steps for each number of distilled images."""
    seed: int = 0
    """Of linear: seed of all random streams."""

    def run(self) -> None:
        """Computes, prints the tables, and writes them as Markdown, JSON and pictures."""
        import torch

        from ..tables.reproduction import RESULTS

        if self.threads is not None:
            if self.threads < 1:
                raise ConfigError(f"threads is {self.threads}.", "Set threads to at least 1.")
            torch.set_num_threads(self.threads)
        until = self.time_budget and time.monotonic() + parse_time(self.time_budget)
        alone = LINEAR if self.result == LINEAR else self.scale
        folder = self.output or Path(f"reproduce-{alone}")
        check_writable(folder / "tables.md")
        names = [*RESULTS, LINEAR] if self.result == ALL else [self.result]
        begin, done = time.monotonic(), list[str]()
        with going_on():
            for number, name in enumerate(names):
                share = _share(until or None, len(names) - number)
                done.append(self._one(name, folder, share))
        if self.result == ALL:
            write_atomically(folder / "tables.md", "\n".join(done).encode())
        taken = time_text(time.monotonic() - begin)
        out.print(f"tables: {folder} ({taken})", markup=False)

    def _one(self, name: str, folder: Path, until: float | None) -> str:
        """Makes one table or figure, and writes its files; returns its Markdown."""
        from ..tables.reproduction import SCALES, make_result
        from ..tables.reproduction.workshop import Workshop

        if name == LINEAR:
            return self._linear(folder if self.result == LINEAR else folder / LINEAR, until)
        data_dir = self.data_dir and self.data_dir.absolute()
        with self.bars() as progress:
            workshop = Workshop(folder, SCALES[self.scale], data_dir, until, self.threads)
            workshop.tell, workshop.progress = self.say, progress
            made = make_result(name, workshop)
        self._write(made, folder)
        out.print(made.markdown(), markup=False)
        if not made.runs and self.result != ALL:
            raise DataError(f"Nothing of {name} could be made.", "See what is missing above.")
        return made.markdown()

    def _write(self, made: Reproduced, folder: Path) -> None:
        from ..artefact import load
        from ..report import draw
        from ..report.curves import draw_curves
        from ..tables.reproduction import RESULTS

        place = folder / made.name
        text = json.dumps(made.as_json(), indent=1, ensure_ascii=False)
        write_atomically(place / "table.json", f"{text}\n".encode())
        write_atomically(place / "table.md", made.markdown().encode())
        if made.kind == "figure" and any(made.curves.values()):
            for suffix in ("png", "svg"):
                draw_curves(made, place / f"{made.name}.{suffix}")
        if RESULTS[made.name].pictures:
            for run in made.runs:
                draw(load(folder / "runs" / run), place / f"{run}.png")

    def _linear(self, folder: Path, until: float | None) -> str:
        from ..report.linear_bound import draw_linear_bound
        from ..tables.linear import diabetes, linear_bound, one_thread
        from ..tables.reproduction import SCALES
        from ..tables.reproduction.workshop import OutOfTimeError, Workshop

        results, picture = folder / "results.json", folder / "linear-bound.png"
        check_writable(results)
        try:
            with self.bars() as progress, one_thread():
                workshop = Workshop(folder, SCALES[self.scale], until=until, progress=progress)
                found = linear_bound(
                    diabetes(),
                    iterations=self.iterations,
                    seed=self.seed,
                    results=results,
                    progress=workshop.within,
                )
        except OutOfTimeError as error:
            if self.result != ALL:
                raise
            self.say(f"linear: {error.what}")
            return f"{LINEAR_TITLE}\n\n- Not measured: {error.what}\n"
        write_results(results, {"linear": found.as_json()}, indent=1)
        for suffix in (".png", ".svg"):
            draw_linear_bound(found, picture.with_suffix(suffix))
        print_table(_table(found))
        out.print(f"figures: {results}\npicture: {picture}", markup=False)
        return _linear_markdown(found)


def _share(until: float | None, results_left: int) -> float | None:
    """The reading of the clock at which a result ends that gets its share of what is left."""
    if until is None:
        return None
    now = time.monotonic()
    return now + max(0.0, until - now) / results_left


LINEAR_TITLE = "## Section 3.3: the linear bound"
HEAD = ("M", "engine, expected", "worst of θ₀", "best possible", "‖A − I‖")


def _linear_rows(found: LinearBound) -> list[list[str]]:
    rows = [["0", f"{found.untrained:.3g}", "", f"{found.untrained:.3g}", ""]]
    for point in found.points:
        enough = point.images >= found.dimensions
        best = "0" if enough else f"{point.theory:.3g}"
        figures = f"{point.engine:.3g}", f"{point.worst:.3g}", best, f"{point.distance:.2g}"
        rows.append([str(point.images), *figures])
    return rows


def _linear_title(found: LinearBound) -> str:
    return (
        f"{found.data}: N = {found.examples}, D = {found.dimensions}; loss above the least "
        f"({found.least_loss:.4g}), relative to it"
    )


def _linear_markdown(found: LinearBound) -> str:
    lines = [LINEAR_TITLE, "", f"{_linear_title(found)}.", ""]
    rows = [[*HEAD], ["---:"] * len(HEAD), *_linear_rows(found)]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    said = "One step reaches the minimum from every θ₀ if and only if M ≥ D."
    return "\n".join([*lines, "", f"- The paper: {said}", ""])


def _table(found: LinearBound) -> Table:
    table = Table(title=_linear_title(found), box=None)
    for name in (*HEAD[:2], f"worst of {found.starts:,} θ₀", *HEAD[3:]):
        table.add_column(name, justify="right")
    for row in _linear_rows(found):
        table.add_row(*row)
    return table
