"""``datadistill reproduce``: a result of the paper, made again from nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import tyro
from rich.table import Table

from ..files import check_writable, write_atomically
from ..tables.linear_settings import ITERATIONS
from .console import Common, out, print_table

if TYPE_CHECKING:
    from ..tables import LinearBound


@dataclass(frozen=True)
class Reproduce(Common):
    """Reproduce a result of the paper: its figures as JSON, and a picture.

    linear: one gradient step of linear regression reaches the global minimum from every initial
    weight if and only if there are as many distilled images as dimensions (section 3.3). Takes
    about a minute.
    """

    result: tyro.conf.Positional[Literal["linear"]]
    """Result to reproduce."""
    output: Path | None = None
    """Folder for the figures. By default reproduce-RESULT."""
    iterations: int = ITERATIONS
    """Outer steps for each number of distilled images."""
    seed: int = 0
    """Seed of all random streams."""

    def run(self) -> None:
        """Computes, prints a table, and writes results.json and the picture."""
        from ..report.linear_bound import draw_linear_bound
        from ..tables.linear import diabetes, linear_bound, one_thread

        folder = self.output or Path(f"reproduce-{self.result}")
        results, picture = folder / "results.json", folder / "linear-bound.png"
        check_writable(results)
        with self.bars() as progress, one_thread():
            found = linear_bound(
                diabetes(), iterations=self.iterations, seed=self.seed, progress=progress
            )
        text = json.dumps({"linear": found.as_json()}, indent=1)
        write_atomically(results, f"{text}\n".encode())
        draw_linear_bound(found, picture)
        print_table(_table(found))
        out.print(f"figures: {results}\npicture: {picture}", markup=False)


def _table(found: LinearBound) -> Table:
    table = Table(
        title=f"{found.data}: N = {found.examples}, D = {found.dimensions}; loss above the least "
        f"({found.least_loss:.4g}), relative to it",
        box=None,
    )
    for name in (
        "M",
        "engine, expected",
        f"worst of {found.starts:,} θ₀",
        "best possible",
        "‖A − I‖",
    ):
        table.add_column(name, justify="right")
    table.add_row("0", f"{found.untrained:.3g}", "", f"{found.untrained:.3g}", "")
    for point in found.points:
        enough = point.images >= found.dimensions
        table.add_row(
            str(point.images),
            f"{point.engine:.3g}",
            f"{point.worst:.3g}",
            "0" if enough else f"{point.theory:.3g}",
            f"{point.distance:.2g}",
        )
    return table
