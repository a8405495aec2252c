"""``datadistill evaluate``: how well distilled data train networks."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

import tyro

from ..artefact import DistilledData, load
from ..core.device import DeviceName
from ..evaluation import evaluate
from .choices import DataChoice, ModelChoice
from .console import Switch, out


@dataclass(frozen=True)
class Evaluate(DataChoice, ModelChoice):
    """Train networks on distilled data and test them on real data."""

    artefact: tyro.conf.Positional[Path]
    """The artefact: a file written by datadistill distill."""
    data: str | None = None
    """Data set to test on; the one that was distilled by default."""
    split: Literal["test", "train"] = "test"
    """Which part of the data set."""
    networks: int | None = None
    """Held-out networks: 1 for fixed, 200 for random initializations by default."""
    seed: int = 0
    """Which held-out networks."""
    device: DeviceName = "auto"
    """Where to compute."""
    json: Switch = False
    """Print the result as JSON, with every network's figure."""

    def run(self) -> None:
        """Evaluates and prints mean ± standard deviation over networks."""
        distilled = load(self.artefact)
        train, test = self._like(distilled).load(self.data or distilled.header.data)
        with self.bars() as progress:
            result = evaluate(
                distilled,
                test if self.split == "test" else train,
                networks=self.networks,
                module=self.own_module(),
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

    def _like(self, distilled: DistilledData) -> "Evaluate":
        """The same with images of the size that was distilled, unless another is asked for."""
        shape = distilled.inputs.shape[2:]
        if len(shape) != 3 or shape[0] not in (1, 3) or shape[1] != shape[2]:
            return self
        return replace(self, size=self.size or shape[1], channels=self.channels or shape[0])
