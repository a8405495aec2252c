"""``datadistill evaluate``: how well distilled data train networks."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import tyro

from .. import data, models
from ..artefact import load
from ..core.device import DeviceName
from ..evaluation import evaluate
from .console import Common, out


@dataclass(frozen=True)
class Evaluate(Common):
    """Train networks on distilled data and test them on real data."""

    artefact: tyro.conf.Positional[Path]
    """The artefact: a file written by datadistill distill."""
    data: str | None = None
    """Data set to test on; the one that was distilled by default."""
    data_dir: Path | None = None
    """Data folder; $DATADISTILL_DATA or the user's cache folder by default."""
    split: Literal["test", "train"] = "test"
    """Which part of the data set."""
    model: str | None = None
    """The network, where it is not built in: package.module:Class or file.py:Class."""
    networks: int | None = None
    """Held-out networks: 1 for fixed, 200 for random initializations by default."""
    seed: int = 0
    """Which held-out networks."""
    device: DeviceName = "auto"
    """Where to compute."""
    json: bool = False
    """Print the result as JSON, with every network's figure."""

    def run(self) -> None:
        """Evaluates and prints mean ± standard deviation over networks."""
        distilled = load(self.artefact)
        train, test = data.load(self.data or distilled.header.data, self.data_dir)
        with self.bars() as progress:
            result = evaluate(
                distilled,
                test if self.split == "test" else train,
                networks=self.networks,
                module=models.find(self.model, {}) if self.model else None,
                seed=self.seed,
                device=self.device,
                progress=progress,
            )
        if self.json:
            figures = {"mean": result.mean, "std": result.std, "networks": len(result.values)}
            out.print_json(
                json.dumps({"artefact": str(self.artefact), **figures, **asdict(result)})
            )
        else:
            out.print(str(result))
