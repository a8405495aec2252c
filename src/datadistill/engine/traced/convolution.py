"""Convolutions of one network as bilinear maps by torch.

Torch's own second derivative of a convolution turns images into kernels, which takes longer than
the maps here: several times as long where images have few channels.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ..bilinear import Maps

FEW_CHANNELS = 4
"""Of the images: a matrix product with all windows is faster then than oneDNN's convolutions."""

Pair = tuple[int, int]


class Settings(NamedTuple):
    """How the kernel moves over an image."""

    stride: Pair
    padding: Pair
    dilation: Pair
    groups: int


class TorchConvolution:
    """A convolution of images (1, *images) by weights (1, *kernel)."""

    def __init__(self, images: torch.Size, kernel: torch.Size, settings: Settings) -> None:
        self._images, self._kernel, self._settings = images, kernel, settings
        plain = settings.dilation == (1, 1) and settings.groups == 1
        self._by_windows = plain and kernel[1] <= FEW_CHANNELS
        # oneDNN's gradients of strided images, and of kernels of one channel, take 3 times as long.
        self._images_by_windows = self._by_windows or (plain and settings.stride != (1, 1))
        self._weights_by_windows = plain and kernel[1] == 1
        self._large = settings.groups == 1 and self._pixels() < kernel[0]

    def __call__(self, x: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, Maps]:
        """The convolution, and its maps."""
        return self.forward(x, w, b), self

    def forward(self, x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        """The convolution."""
        stride, padding, dilation, groups = self._settings
        if self._by_windows:
            windows: Any = torch.ops.aten._slow_conv2d_forward
            return windows(x[0], w[0], w.shape[3:], b[0], stride, padding).unsqueeze(0)
        return torch.conv2d(x[0], w[0], b[0], stride, padding, dilation, groups).unsqueeze(0)

    def images(self, g: Tensor, w: Tensor) -> Tensor:
        """The transpose with respect to the images."""
        x = g.new_empty(self._images)  # only its shape counts
        back = self._back_by_windows if self._images_by_windows else self._back
        return back(g[0], x, w[0], (True, False, False))[0].unsqueeze(0)

    def weights(self, x: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
        """The transpose with respect to weights and biases."""
        if self._large and not self._weights_by_windows:
            return self._of_large(x[0], g[0])
        back = self._back_by_windows if self._weights_by_windows else self._back
        found = back(g[0], x[0], g.new_empty(self._kernel), (False, True, True))
        return found[1].unsqueeze(0), found[2].unsqueeze(0)

    def _of_large(self, x: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
        """The same as a matrix product: for weights larger than all maps, oneDNN takes longer."""
        stride, padding, dilation, _ = self._settings
        windows = F.unfold(x, self._kernel[2:], dilation, padding, stride)  # pyright: ignore[reportArgumentType]
        maps = g.transpose(0, 1).flatten(1)
        w = maps @ windows.transpose(0, 1).flatten(1).mT
        return w.view(1, *self._kernel), maps.sum(1).unsqueeze(0)

    def _pixels(self) -> int:
        """How many pixels the maps of all images have."""
        stride, padding, dilation, _ = self._settings
        count = self._images[0]
        for axis in (0, 1):
            reach = dilation[axis] * (self._kernel[2 + axis] - 1)
            room = self._images[2 + axis] + 2 * padding[axis] - reach - 1
            count *= room // stride[axis] + 1
        return count

    def _back(self, g: Tensor, x: Tensor, w: Tensor, wanted: tuple[bool, ...]) -> Sequence[Tensor]:
        back: Any = torch.ops.aten.convolution_backward
        stride, padding, dilation, groups = self._settings
        return back(g, x, w, [len(w)], stride, padding, dilation, False, (0, 0), groups, wanted)

    def _back_by_windows(
        self, g: Tensor, x: Tensor, w: Tensor, wanted: tuple[bool, ...]
    ) -> Sequence[Tensor]:
        back: Any = torch.ops.aten._slow_conv2d_backward.output_mask
        stride, padding, *_ = self._settings
        return back(g, x, w, w.shape[2:], stride, padding, wanted)
