"""Data augmentation: random views of real images that keep their class.

All randomness comes from the generator passed in, one numbered stream per batch.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from ...errors import DataError
from .decode import DRAWS
from .image_files import ImageFiles


class Augmentation(Protocol):
    """Draws random views of images."""

    def __call__(
        self, inputs: Tensor | ImageFiles, indices: Tensor, generator: torch.Generator
    ) -> Tensor:
        """Returns one random view of each chosen input."""
        ...


@dataclass(frozen=True)
class PadCropFlip:
    """Reflection padding, a random crop of the original size, and a random horizontal flip.

    Attributes:
        padding: Width of the padding in pixels.
    """

    padding: int = 4

    def __call__(
        self, inputs: Tensor | ImageFiles, indices: Tensor, generator: torch.Generator
    ) -> Tensor:
        """Returns one random view of each chosen input; half of them are flipped."""
        images = select(inputs, indices)
        count, channels, height, width = images.shape
        top, left = torch.randint(0, 2 * self.padding + 1, (2, count), generator=generator)
        flip = torch.rand(count, generator=generator) < 0.5
        rows = self._mirrored(height)[top[:, None] + torch.arange(height)]
        columns = self._mirrored(width)[left[:, None] + torch.arange(width)]
        columns = torch.where(flip[:, None], columns.flip(1), columns)
        # Padding, crop and flip are one look-up: output pixel (i, j) is input (rows_i, columns_j).
        source = (rows[:, :, None] * width + columns[:, None, :]).reshape(count, 1, -1)
        views = images.flatten(2).gather(2, source.expand(-1, channels, -1))
        return views.reshape(images.shape)

    def _mirrored(self, length: int) -> Tensor:
        """The source of each pixel of the padded axis, e.g. 2 1 0 1 2 3 2 1 for 4 pixels."""
        if length <= self.padding:
            raise DataError(
                f"Images of {length} pixels are too small for a padding of {self.padding} pixels.",
                "Load larger images, or pass augment=False.",
            )
        places = torch.arange(-self.padding, length + self.padding).abs()
        return length - 1 - (length - 1 - places).abs()


@dataclass(frozen=True)
class Affine:
    """Random translation, rotation, scaling and shear, as handwriting varies.

    Each amount is drawn uniformly from a range around 0. Pixels outside of an image repeat its
    edge.

    Attributes:
        shift: Largest translation along either axis, as a fraction of the image's side.
        turn: Largest rotation in degrees.
        resize: Largest relative growth; images shrink by the same factor at most.
        slant: Largest horizontal shear, in pixels per pixel of height.
    """

    shift: float = 1 / 28
    turn: float = 10.0
    resize: float = 0.1
    slant: float = 0.15

    def __call__(
        self, inputs: Tensor | ImageFiles, indices: Tensor, generator: torch.Generator
    ) -> Tensor:
        """Returns one random view of each chosen input."""
        images = select(inputs, indices)
        # The pixel of the view at (x, y), from -1 to 1, is sampled at A (x, y, 1) of the image.
        grid = F.affine_grid(self._maps(images, generator), [*images.shape], align_corners=False)
        pixels = images.float() if images.dtype == torch.uint8 else images
        views = F.grid_sample(pixels, grid.to(pixels), padding_mode="border", align_corners=False)
        return views.round_().to(torch.uint8) if images.dtype == torch.uint8 else views

    def _maps(self, images: Tensor, generator: torch.Generator) -> Tensor:
        """Draws a matrix A (2×3) for each image."""
        count, _, height, width = images.shape
        right, down, turn, size, slant = torch.rand((5, count), generator=generator) * 2 - 1
        angle = math.radians(self.turn) * turn
        factor = (1 + self.resize) ** -size
        cos, sin = factor * angle.cos(), factor * angle.sin()
        rows = (
            (cos, (self.slant * slant - sin) * height / width, 2 * self.shift * right),
            (sin * width / height, cos, 2 * self.shift * down),
        )
        return torch.stack([torch.stack(row, -1) for row in rows], -2)


@dataclass(frozen=True)
class ResizedCropFlip:
    """A random resized crop and a random horizontal flip of each image file.

    The crop has 8 to 100 % of the image's area and an aspect ratio of 3:4 to 4:3. It is taken
    from the original pixels while decoding.
    """

    def __call__(
        self, inputs: Tensor | ImageFiles, indices: Tensor, generator: torch.Generator
    ) -> Tensor:
        """Returns one random view of each chosen input."""
        if isinstance(inputs, Tensor):
            raise DataError(
                "ResizedCropFlip needs image files, but these images are in memory.",
                "Use PadCropFlip for images in memory.",
            )
        draws = torch.rand((len(indices), DRAWS), dtype=torch.float64, generator=generator)
        return inputs.crop(indices, draws)


def select(inputs: Tensor | ImageFiles, indices: Tensor | slice) -> Tensor:
    """Returns some inputs; for a tensor of indices much faster than ``inputs[indices]``."""
    if isinstance(inputs, ImageFiles) or isinstance(indices, slice):
        return inputs[indices]
    numbers = indices.ndim == 1 and indices.dtype == torch.int64
    if not numbers or (len(indices) and int(indices.min()) < 0):
        return inputs[indices]
    return inputs.index_select(0, indices.to(inputs.device))
