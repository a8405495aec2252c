"""``datadistill quickstart``: the whole method on small data, in about two minutes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.table import Table

from .. import data, models
from ..core.adjoint import StoredGraph
from ..core.initialization import FixedInit
from ..evaluation import evaluate
from ..files import check_writable
from ..report import draw
from ..runs import Comparison, compare, distill
from .console import Common, out

SETTINGS: dict[str, Any] = {
    "steps": 1,
    "epochs": 5,
    "iterations": 1200,
    "batch_size": 256,
    "learning_rate": 0.1,
    "outer_lr": 0.05,
    "betas": (0.9, 0.999),
    "decay_every": 150,
    "clip_norm": 0.1,
}
"""Chosen on validation data for speed; the paper's settings need many more outer steps."""


@dataclass(frozen=True)
class Quickstart(Common):
    """Distil 1,437 handwritten digits into 10 images for a LeNet; see what they are worth."""

    output: Path = Path("quickstart")
    """Folder for the artefact and the picture."""

    def run(self) -> None:
        """Distils, compares with real images and full training, and saves the result."""
        # A second thread gains little here, and waits in a loop: with other load it costs much.
        torch.set_num_threads(1)
        artefact, picture = self.output / "digits.safetensors", self.output / "digits.png"
        check_writable(artefact)
        train, test = data.load("digits")
        self.say(
            f"Distilling {len(train):,} handwritten digits into 10 images, one of each class, so "
            f"that\n{SETTINGS['epochs']} gradient steps on them train one particular LeNet."
        )
        with self.bars() as progress:
            distilled = distill(
                train,
                models.LeNet(),
                initialization=FixedInit(seed=1),
                adjoint=StoredGraph(),  # faster, and five updates of ten images are small
                keep="best",
                progress=progress,
                **SETTINGS,
            )
            distilled = distilled.with_claim(evaluate(distilled, test).claim())
            distilled.save(artefact)
            draw(distilled, picture)
            comparison = compare(distilled, train, test, progress=progress)
        out.print(_table(comparison, len(train), len(test)))
        out.print(f"distilled data: {artefact}\npicture: {picture}")
        self.say(
            "\nWhat to try next:\n"
            f"  datadistill train {artefact}     a LeNet trained on these 10 images alone\n"
            f"  datadistill evaluate {artefact}  test them again\n"
            f"  datadistill distill --help{' ' * 26}your own settings; MNIST\n"
            f"  README.md{' ' * 43}your own data and networks, in Python"
        )


def _table(comparison: Comparison, training: int, tested: int) -> Table:
    table = Table(title=f"The same LeNet, tested on {tested} held-out digits")
    table.add_column("trained on")
    table.add_column("accuracy", justify="right")
    real = f"{100 * comparison.random_real_mean:.1f} ± {100 * comparison.random_real_std:.1f} %"
    rows = [
        ("nothing", f"{100 * comparison.untrained:.1f} %"),
        (f"10 random real images, {len(comparison.random_real)} draws¹", real),
        ("10 distilled images", f"{100 * comparison.distilled:.1f} %"),
        (f"all {training:,} real images", f"{100 * comparison.all_real:.1f} %"),
    ]
    for what, figure in rows:
        table.add_row(what, figure, style="bold green" if "distilled" in what else None)
    table.caption = (
        f"¹ learning rate {comparison.rate:.3g} and {comparison.epochs} epoch(s), "
        "the best on held-out training data"
    )
    return table
