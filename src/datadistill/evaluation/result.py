"""What an evaluation finds: figures of each network, their mean and deviation."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..artefact import Claim
from ..core.values import one_line, titled
from ..markup import table, text


class _OverNetworks:
    """Figures that are one for each network."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean of the metric over networks."""
        return _mean(self.values)

    @property
    def std(self) -> float:
        """Standard deviation of the metric over networks; 0 for one."""
        return _std(self.values)


@dataclass(frozen=True)
class ClassScore(_OverNetworks):
    """How well networks do on the examples of one class.

    Attributes:
        name: What the class is called; its number if it has no name.
        examples: How many examples it has.
        values: The metric of each network over these examples.
    """

    name: str
    examples: int
    values: tuple[float, ...]

    __repr__ = one_line


@dataclass(frozen=True)
class Evaluation(_OverNetworks):
    """How well networks do on real data.

    Attributes:
        values: The metric of each network: its accuracy, or mean squared error.
        losses: The mean loss of each network.
        metric: What ``values`` measures.
        data: What the data set is called.
        split: Which part of it was used.
        examples: How many examples that were.
        seed: Which networks of a random initialization these are.
        by_class: The metric on the examples of each class; empty for regression.
        updates: After how many updates the networks were tested, where it is known.
        note: What is unusual about the networks, e.g. another architecture than the one that
            was distilled for.
        statistics: What the running statistics of the networks were measured on, where they
            keep some.
    """

    values: tuple[float, ...]
    losses: tuple[float, ...]
    metric: str
    data: str
    split: str
    examples: int
    seed: int
    by_class: tuple[ClassScore, ...] = ()
    updates: int | None = None
    note: str = ""
    statistics: str | None = None

    __repr__ = titled

    @property
    def loss(self) -> float:
        """Mean loss over networks."""
        return _mean(self.losses)

    @property
    def loss_std(self) -> float:
        """Standard deviation of the loss over networks; 0 for one."""
        return _std(self.losses)

    def claim(self) -> Claim:
        """The figure as an artefact states it."""
        return Claim(**self._figures())

    def __str__(self) -> str:
        # Not claim(), which refuses the figures of networks that diverged.
        claim = Claim.model_construct(**self._figures())
        return f"{claim} ({self.note})" if self.note else str(claim)

    def _repr_html_(self) -> str:
        """What a notebook shows: the figure, and that of every class."""
        share = self.metric.startswith("accuracy")
        scale, unit, digits = (100, " %", ".1f") if share else (1, "", ".4g")

        def figure(one: ClassScore) -> str:
            deviation = f" ± {scale * one.std:{digits}}" if len(one.values) > 1 else ""
            return f"{scale * one.mean:{digits}}{deviation}{unit}"

        rows = [(one.name, f"{one.examples:,}", figure(one)) for one in self.by_class]
        classes = table(rows, ("class", "examples", self.metric)) if rows else ""
        return f"<div><p>{text(self)}</p>{classes}</div>"

    def _figures(self) -> dict[str, Any]:
        return {
            "metric": self.metric,
            "mean": self.mean,
            "std": self.std,
            "networks": len(self.values),
            "data": self.data,
            "split": self.split,
            "examples": self.examples,
            "seed": self.seed,
            "statistics": self.statistics,
        }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _std(values: Sequence[float]) -> float:
    mean = _mean(values)
    square = sum((value - mean) ** 2 for value in values)
    return math.sqrt(square / max(len(values) - 1, 1))
