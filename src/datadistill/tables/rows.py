"""The baseline table: its rows, and the setting they were measured in."""

import dataclasses
from dataclasses import dataclass
from typing import Literal

import torch

from ..baselines.paper import Figure
from ..core.values import one_line

Select = Literal["train", "test"]
"""What chooses learning rates and epochs: held-out training data, or as in the paper the test."""


@dataclass(frozen=True)
class TableRow:
    """One way to train or classify, and its accuracy.

    Attributes:
        name: The name of the row, e.g. ``random real``.
        values: The accuracy of every network, for every set of images.
        chosen: The learning rate and epochs, or norm and K, that were chosen; empty if none.
        paper: The paper's figure in percent, if it has this experiment.
    """

    name: str
    values: tuple[tuple[float, ...], ...]
    chosen: str = ""
    paper: Figure | None = None

    __repr__ = one_line

    @property
    def sets(self) -> int:
        """How many sets of images."""
        return len(self.values)

    @property
    def networks(self) -> int:
        """How many networks were trained on each set; 1 if no network is involved."""
        return len(self.values[0])

    @property
    def mean(self) -> float:
        """Mean over all sets and networks."""
        return float(self._all().mean())

    @property
    def std(self) -> float | None:
        """Standard deviation over all pairs of set and network; None for a single one."""
        return float(self._all().std()) if self._all().numel() > 1 else None

    def _all(self) -> torch.Tensor:
        return torch.tensor(self.values, dtype=torch.float64)


@dataclass(frozen=True)
class BaselineTable:
    """Distilled data compared with every baseline and reference.

    Attributes:
        rows: In the paper's order, between the references.
        data: The data set.
        test_examples: How many examples of it were tested on.
        network: The network.
        initialization: ``random`` or ``fixed``, perhaps pre-trained.
        source: The other data set that the networks were pre-trained on, if they were.
        images: Distilled images in all steps.
        steps: Steps they are divided into.
        select: What the learning rates, epochs, norms and K were chosen on.
        train_examples: How many examples all training data are.
    """

    rows: tuple[TableRow, ...]
    data: str
    test_examples: int
    network: str
    initialization: str
    source: str | None
    images: int
    steps: int
    select: Select
    train_examples: int | None = None

    __repr__ = one_line

    def __getitem__(self, name: str) -> TableRow:
        return next(row for row in self.rows if row.name == name)

    def summary(self) -> dict[str, object]:
        """All figures as JSON: accuracies between 0 and 1, the paper's in percent."""
        own = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "rows"}
        rows = {
            row.name: {
                "mean": row.mean,
                "std": row.std,
                "sets": row.sets,
                "networks": row.networks,
                "chosen": row.chosen,
                "paper_percent": list(row.paper) if row.paper else None,
            }
            for row in self.rows
        }
        return {**own, "rows": rows}
