"""Several views together."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Self

import torch
from torch import Tensor

from ...errors import ConfigError
from ..seam import Record
from .colour import Brightness, Contrast, Saturation
from .cutout import Cutout
from .geometry import Flip, Rotate, Scale, Shift
from .view import Function, View


@dataclass(frozen=True)
class Combined(View, name="combined"):
    """One view after another: ``shift+rotate``.

    Attributes:
        views: The views, in order.
    """

    views: tuple[View, ...]

    wraps = True

    def draw(self, stream: torch.Generator) -> Function:
        functions = [view.draw(stream) for view in self.views]

        def combined(images: Tensor) -> Tensor:
            return reduce(lambda seen, function: function(seen), functions, images)

        return combined

    @property
    def text(self) -> str:
        return "+".join(view.text for view in self.views)

    def record(self) -> Record:
        return {"name": self.name, "views": [view.record() for view in self.views]}

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        return cls(tuple(View.from_record(one) for one in values["views"]))

    def check_recordable(self) -> None:
        super().check_recordable()
        for view in self.views:
            if not view.is_built_in():
                raise ConfigError(
                    f"{view.name} is a view of your own, and no setting combines it with others.",
                    "Let its draw() call theirs.",
                )


@dataclass(frozen=True)
class Dsa(View, name="dsa"):
    """One of eight views in every outer step, as differentiable Siamese augmentation draws them."""

    def draw(self, stream: torch.Generator) -> Function:
        number = torch.randint(len(SIAMESE), (), generator=stream)
        return SIAMESE[int(number)].draw(stream)


@dataclass(frozen=True)
class Digits(View, name="digits"):
    """Small shifts, turns and changes of size, as handwriting varies."""

    def draw(self, stream: torch.Generator) -> Function:
        return HANDWRITING.draw(stream)


SIAMESE = (
    *(Flip(), Rotate(), Scale(), Shift(), Cutout()),
    *(Brightness(), Saturation(), Contrast()),
)
HANDWRITING = Combined((Shift(1 / 14), Scale(1.1), Rotate(10.0)))
