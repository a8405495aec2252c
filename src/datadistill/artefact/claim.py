"""A figure that distilled data claim to reach, and which figures there can be."""

import math
from typing import Any

from pydantic import (
    BaseModel,
    ConfigDict,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from ..core.values import titled
from .bounds import Count, Finite, Text, Whole

ROUNDING = 1e-6
"""Of a standard deviation that is as large as it can be."""


class Claim(BaseModel):
    """A figure that the distilled data reach, and how it was measured.

    A figure that its metric cannot have is refused: an accuracy outside [0, 1], a negative error, a
    standard deviation that is negative, or larger than ``networks`` figures with such a mean can
    have. One network has the standard deviation 0.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    metric: Text
    mean: Finite
    std: Finite
    networks: Count
    data: Text
    split: Text
    examples: Count
    seed: Whole
    statistics: Text | None = None
    """What the running statistics of the networks were measured on, where they keep some. None, as
    in files of earlier versions: they normalised by the batch that they were tested on."""

    __repr__ = titled

    @model_serializer(mode="wrap")
    def _without_what_is_not_there(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in dump(self).items() if value is not None}

    @property
    def is_accuracy(self) -> bool:
        """Whether the metric is a share of examples."""
        return self.metric.startswith("accuracy")

    @model_validator(mode="after")
    def _can_be(self) -> "Claim":
        if self.is_accuracy and not 0 <= self.mean <= 1:
            raise ValueError(f"the mean of an accuracy is {self.mean:.6g}, not between 0 and 1")
        if self.metric == "mean squared error" and self.mean < 0:
            raise ValueError(f"the mean of a squared error is {self.mean:.6g}, below 0")
        most = self.largest_std
        if not 0 <= self.std <= most * (1 + ROUNDING) + ROUNDING * (self.networks > 1):
            raise ValueError(
                f"the standard deviation is {self.std:.6g}; with the mean {self.mean:.6g}, "
                f"{self.networks} network(s) have one from 0 to {most:.6g}"
            )
        return self

    @property
    def largest_std(self) -> float:
        """The largest standard deviation that so many figures with this mean can have."""
        n = self.networks
        if n == 1:
            return 0.0
        if self.is_accuracy:  # all of them 0 or 1
            return math.sqrt(self.mean * (1 - self.mean) * n / (n - 1))
        if self.metric == "mean squared error":  # all but one of them 0
            return self.mean * math.sqrt(n)
        return math.inf

    def __str__(self) -> str:
        scale, form = (100, ".2f") if self.is_accuracy else (1, ".4g")
        unit = " %" if self.metric == "accuracy" else f" {'% ' * self.is_accuracy}{self.metric}"
        deviation = f" ± {scale * self.std:{form}}" if self.networks > 1 else ""
        over = f" over {self.networks} networks" if self.networks > 1 else ""
        used = f", running statistics of {self.statistics}" if self.statistics else ""
        return (
            f"{scale * self.mean:{form}}{deviation}{unit} on {self.data} {self.split}{over}{used}"
        )
