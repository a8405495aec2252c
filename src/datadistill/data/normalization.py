"""Mean and standard deviation of pixels."""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from ..core.values import one_line
from ..errors import DataError
from .whitening import Whitening

AT_ONCE = 1024
MOST_MEASURED = 100_000
"""Images whose pixels are measured at most, evenly spaced; fewer images are all measured."""
LUMA = (0.299, 0.587, 0.114)  # weights of red, green and blue in grey (ITU-R BT.601)


class Pixels(Protocol):
    """Bytes (examples, channels, height, width), in memory or in files."""

    @property
    def shape(self) -> torch.Size:
        """The shape of all of them."""
        ...

    def __getitem__(self, indices: Tensor, /) -> Tensor:
        """Returns some of them."""
        ...


@dataclass(frozen=True)
class Normalization:
    """Mean and standard deviation of each channel, for pixels in [0, 1]; then perhaps whitening."""

    mean: tuple[float, ...]
    std: tuple[float, ...]
    whitening: Whitening | None = None

    __repr__ = one_line

    @classmethod
    def measured(cls, images: Pixels) -> "Normalization":
        """The mean and standard deviation of bytes (examples, channels, height, width)."""
        examples, channels = images.shape[:2]
        counts = np.zeros((channels, 256), np.int64)
        for chosen in torch.arange(0, examples, max(1, -(-examples // MOST_MEASURED))).split(
            AT_ONCE
        ):
            pixels = images[chosen].cpu().numpy()
            for channel in range(channels):
                counts[channel] += np.bincount(pixels[:, channel].ravel(), minlength=256)
        values, mean, std = np.arange(256) / 255, list[float](), list[float]()
        for count in counts:
            weights = count / max(count.sum(), 1)
            average = float(weights @ values)
            mean.append(round(average, 4))
            # Images of a single colour have no deviation to divide by.
            std.append(round(math.sqrt(float(weights @ (values - average) ** 2)), 4) or 1.0)
        return cls((*mean,), (*std,))

    def apply(self, images: Tensor) -> Tensor:
        """Pixels in [0, 1] → normalised space; images are (…, channels, height, width)."""
        mean, std = self._columns(images)
        return self._whitened((images - mean) / std)

    def apply_(self, images: Tensor) -> Tensor:
        """The same in place, which takes half the time for large batches."""
        mean, std = self._columns(images)
        return self._whitened(images.sub_(mean).div_(std))

    def undo(self, images: Tensor) -> Tensor:
        """Normalised space → pixels, mostly in [0, 1]."""
        mean, std = self._columns(images)
        return (self.whitening.undo(images) if self.whitening else images) * std + mean

    def with_channels(self, channels: int) -> "Normalization":
        """The same for grey images converted to colour, or colour images converted to grey.

        The mean of grey is exact. Its standard deviation is exact if the colours are perfectly
        correlated, as they nearly are in photographs.
        """
        if channels == len(self.mean):
            return self
        if self.whitening:
            raise DataError(
                f"Images of {channels} channel(s) cannot be whitened as those of {len(self.mean)}.",
                f"Load the images with channels={len(self.mean)}.",
            )
        if channels == 3:
            return Normalization(self.mean * 3, self.std * 3)
        return Normalization((_grey(self.mean),), (_grey(self.std),))

    def _whitened(self, images: Tensor) -> Tensor:
        return self.whitening.apply(images) if self.whitening else images

    def _columns(self, images: Tensor) -> tuple[Tensor, Tensor]:
        mean, std = images.new_tensor(self.mean), images.new_tensor(self.std)
        return mean[:, None, None], std[:, None, None]


def _grey(values: tuple[float, ...]) -> float:
    return round(sum(w * v for w, v in zip(LUMA, values, strict=True)), 4)


IMAGENET = Normalization((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
