"""Views that change pixels where they are: brightness, contrast, saturation."""

from dataclasses import dataclass

import torch

from .amounts import between, require_positive
from .view import Function, View


@dataclass(frozen=True)
class Brightness(View, name="brightness"):
    """Adds the same number to every pixel, in normalised space.

    Attributes:
        most: The range of the number, half of it below 0.
    """

    most: float = 1.0

    def __post_init__(self) -> None:
        require_positive(self)

    def draw(self, stream: torch.Generator) -> Function:
        added = between(-self.most / 2, self.most / 2, stream)
        return lambda images: images + added


@dataclass(frozen=True)
class Contrast(View, name="contrast"):
    """Multiplies the distance of every pixel from the image's mean.

    Attributes:
        most: How far the factor is from 1 at most.
    """

    most: float = 0.5

    def __post_init__(self) -> None:
        require_positive(self)

    def draw(self, stream: torch.Generator) -> Function:
        factor = between(1 - self.most, 1 + self.most, stream)
        return lambda images: torch.lerp(images.mean((1, 2, 3), keepdim=True), images, factor)


@dataclass(frozen=True)
class Saturation(View, name="saturation"):
    """Multiplies the distance of every channel from the pixel's mean.

    Attributes:
        most: The largest factor; the smallest is 0, which makes images grey.
    """

    most: float = 2.0

    def __post_init__(self) -> None:
        require_positive(self)

    def draw(self, stream: torch.Generator) -> Function:
        factor = between(0, self.most, stream)
        return lambda images: torch.lerp(images.mean(1, keepdim=True), images, factor)
