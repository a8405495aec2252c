"""Cutout: a square of every image is hidden."""

from dataclasses import dataclass

import torch
from torch import Tensor

from .amounts import between, require_positive
from .view import Function, View


@dataclass(frozen=True)
class Cutout(View, name="cutout"):
    """Sets a rectangle to 0, the mean of normalised pixels.

    Attributes:
        side: Its height and width as shares of the image's. Its centre is anywhere, so that parts
            of it may lie outside.
    """

    side: float = 0.5

    def __post_init__(self) -> None:
        require_positive(self, below=1)

    def draw(self, stream: torch.Generator) -> Function:
        down, across = between(0, 1, stream), between(0, 1, stream)

        def cut(images: Tensor) -> Tensor:
            hidden = images.new_zeros(images.shape[-2:], dtype=torch.bool)
            rows, columns = (
                slice(
                    max(0, round((centre - self.side / 2) * n)), round((centre + self.side / 2) * n)
                )
                for centre, n in zip((down, across), hidden.shape, strict=True)
            )
            hidden[rows, columns] = True
            return images.masked_fill(hidden, 0)

        return cut
