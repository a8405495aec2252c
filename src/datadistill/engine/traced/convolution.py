"""Convolutions of one network as bilinear maps by torch.

Torch's own second derivative of a convolution turns images into kernels, which takes up to ten
times as long as the maps here.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
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
        wanted = (True, False, False)
        if self._by_windows:
            back: Any = torch.ops.aten._slow_conv2d_backward.output_mask
            stride, padding, *_ = self._settings
            found = back(g[0], x, w[0], w.shape[3:], stride, padding, wanted)
        else:
            found = self._back(g[0], x, w[0], wanted)
        return found[0].unsqueeze(0)

    def weights(self, x: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
        """The transpose with respect to weights and biases."""
        found = self._back(g[0], x[0], g.new_empty(self._kernel), (False, True, True))
        return found[1].unsqueeze(0), found[2].unsqueeze(0)

    def _back(self, g: Tensor, x: Tensor, w: Tensor, wanted: tuple[bool, ...]) -> Sequence[Tensor]:
        back: Any = torch.ops.aten.convolution_backward
        stride, padding, dilation, groups = self._settings
        return back(g, x, w, [len(w)], stride, padding, dilation, False, (0, 0), groups, wanted)
