"""``datadistill quickstart``: the whole method on small data, in about a minute."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from ..hints import command
from .console import Common, out

if TYPE_CHECKING:
    from ..tables import Comparison

RECIPE = "digits-fixed"


@dataclass(frozen=True)
class Quickstart(Common):
    """Try the method in two minutes: distil 1,437 digits into 100 images, and compare."""

    output: Path = Path("quickstart")
    """Run folder. The same command continues an interrupted run."""

    def run(self) -> None:
        """Distils, compares with real images and full training, and saves the result."""
        from ..report import draw
        from ..runs.experiment import load
        from ..runs.recipes import read_recipe
        from ..runs.run import Run
        from ..runs.store.folder import RunFolder
        from ..tables import compare

        loaded, folder = load(read_recipe(RECIPE).config), RunFolder(self.output)
        train, test, distillation = loaded.train, loaded.test, loaded.prepare()
        steps = distillation.config.steps
        self.say(
            f"Distilling {len(train):,} handwritten digits into {steps} batches of 10 images, one "
            f"of each class,\nso that {steps} gradient steps on them train one particular LeNet."
        )
        with self.bars() as progress:
            distilled = Run(
                distillation,
                folder,
                test,
                tell=self.say,
                warn=self.warn,
                progress=progress,
            ).go()
            draw(distilled, folder.picture)
            comparison = compare(distilled, train, test, progress=progress)
        images = distilled.inputs.shape[:2].numel()
        out.print(_table(comparison, images, len(train), len(test)))
        out.print(f"distilled data: {folder.distilled}\npicture: {folder.picture}")
        following = {
            command("train", folder.path): f"a LeNet trained on these {images} images alone",
            command("evaluate", folder.path): "test them again",
            command("distill", "--help"): "your own settings; MNIST",
            "README.md": "your own data and networks, in Python",
        }
        width = max(map(len, following))
        self.say("\nWhat to try next:")
        for what, why in following.items():
            self.say(f"  {what:{width}}  {why}")


def _table(comparison: Comparison, images: int, training: int, tested: int) -> Table:
    table = Table(title=f"The same LeNet, tested on {tested} held-out digits")
    table.add_column("trained on")
    table.add_column("accuracy", justify="right")
    real = f"{100 * comparison.random_real_mean:.1f} ± {100 * comparison.random_real_std:.1f} %"
    rows = [
        ("nothing", f"{100 * comparison.untrained:.1f} %"),
        (f"{images} random real images, {len(comparison.random_real)} draws¹", real),
        (f"{images} distilled images", f"{100 * comparison.distilled:.1f} %"),
        (f"all {training:,} real images", f"{100 * comparison.all_real:.1f} %"),
    ]
    for what, figure in rows:
        table.add_row(what, figure, style="bold green" if "distilled" in what else None)
    table.caption = (
        f"¹ learning rate {comparison.rate:.3g} and {comparison.epochs} epoch(s), "
        "the best on held-out training data"
    )
    return table
