"""Views that move pixels: shift, scale, rotate, flip."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from .amounts import between, require_positive
from .view import Function, View


@dataclass(frozen=True)
class Shift(View, name="shift"):
    """By whole pixels along both axes. The edge is repeated.

    Attributes:
        most: The largest shift, as a share of the side.
    """

    most: float = 0.125

    def __post_init__(self) -> None:
        require_positive(self, below=1)

    def draw(self, stream: torch.Generator) -> Function:
        across, down = (
            between(-self.most, self.most, stream),
            between(-self.most, self.most, stream),
        )

        def shift(images: Tensor) -> Tensor:
            height, width = images.shape[-2:]
            x, y = round(across * width) / width, round(down * height) / height
            return resampled(images, ((1, 0, 2 * x), (0, 1, 2 * y)))

        return shift


@dataclass(frozen=True)
class Scale(View, name="scale"):
    """Larger or smaller, independently in height and width.

    Attributes:
        most: The largest factor; the smallest is its inverse.
    """

    most: float = 1.2

    def __post_init__(self) -> None:
        require_positive(self)

    def draw(self, stream: torch.Generator) -> Function:
        x, y = (self.most ** between(-1, 1, stream) for _ in range(2))
        return lambda images: resampled(images, ((x, 0, 0), (0, y, 0)))


@dataclass(frozen=True)
class Rotate(View, name="rotate"):
    """Around the centre.

    Attributes:
        degrees: The largest angle, in both directions.
    """

    degrees: float = 15.0

    def __post_init__(self) -> None:
        require_positive(self)

    def draw(self, stream: torch.Generator) -> Function:
        angle = math.radians(between(-self.degrees, self.degrees, stream))
        cos, sin = math.cos(angle), math.sin(angle)

        def rotate(images: Tensor) -> Tensor:
            ratio = images.shape[-2] / images.shape[-1]
            return resampled(images, ((cos, -sin * ratio, 0), (sin / ratio, cos, 0)))

        return rotate


@dataclass(frozen=True)
class Flip(View, name="flip"):
    """Left and right, in half of the outer steps."""

    def draw(self, stream: torch.Generator) -> Function:
        flipped = between(0, 1, stream) < 0.5
        return lambda images: images.flip(-1) if flipped else images


def resampled(images: Tensor, matrix: tuple[tuple[float, ...], ...]) -> Tensor:
    """The pixel at (x, y), from −1 to 1, is that at A (x, y, 1) of the image; bilinear."""
    maps = images.new_tensor(matrix).expand(len(images), 2, 3)
    grid = F.affine_grid(maps, [*images.shape], align_corners=False)
    return F.grid_sample(images, grid, padding_mode="border", align_corners=False)
