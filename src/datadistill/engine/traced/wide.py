"""Wide convolutions of one network as bilinear maps, with the channels last in memory.

oneDNN then computes convolutions at almost the speed of matrix products, and would otherwise spend
as much time to move numbers around. Where there are few channels or pixels, a matrix product with
all windows is faster still. Faster than both are C kernels of our own: Winograd's convolutions for
3 × 3 and 5 × 5 kernels, and direct ones for images of few channels.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..bilinear import Maps
from ..box import box
from ..choice import may_use_kernels
from ..kernels.direct import Direct, worth_direct
from ..kernels.last import empty_last, last
from ..kernels.library import functions_for
from ..kernels.windows import Windows
from ..kernels.winograd import Winograd, worth_winograd
from .convolution import Pair, Settings

FEW_CHANNELS = 4
"""Of the images: a matrix product with all windows is faster then than oneDNN's convolutions."""
FEW_PIXELS = 1024
"""Of all maps: the same holds for the gradient of the weights."""

WIDE = 3000
"""Weights: of convolutions with fewer, as much time goes into calls, and layouts do not matter."""


class WideConvolution:
    """A convolution of images (1, *images) by weights (1, *kernel).

    Args:
        images: The shape of the images.
        kernel: That of the weights.
        settings: How the kernel moves.
        like: A tensor of their dtype.

    Attributes:
        winograd: What computes it, if it is one of Winograd's.
        direct: What computes it and the gradient of its weights, if its images have few channels.
    """

    def __init__(
        self, images: torch.Size, kernel: torch.Size, settings: Settings, like: Tensor
    ) -> None:
        self._images, self._kernel, self._settings = images, kernel, settings
        high, wide = self._maps()
        self._result = (images[0], high, wide, kernel[0])  # with the channels last
        pixels, few = images[0] * high * wide, kernel[1] <= FEW_CHANNELS
        self._large = settings.groups == 1 and pixels < kernel[0]
        functions = functions_for(like) if may_use_kernels() and settings.groups == 1 else None
        self._windows = functions and Windows(
            functions,
            images,
            (kernel[2], kernel[3]),
            (settings.stride, settings.padding, settings.dilation),
            (high, wide),
            by_rows=not few,
        )
        plain = settings[:1] + settings[2:] == ((1, 1), (1, 1), 1)
        shapes = images, kernel, settings.padding, (high, wide)
        self.winograd = self.direct = None
        if functions and plain and worth_winograd(*shapes):
            self.winograd = Winograd(functions, *shapes)
        elif functions and plain and worth_direct(kernel, settings.padding):
            self.direct = Direct(functions, *shapes)
        self._in_c = self.winograd or self.direct
        self._by_windows = self._windows if few or self._large else None
        self._weights_by_windows = self._windows if few or pixels < FEW_PIXELS else None

    def __call__(self, x: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, Maps]:
        """The convolution, and its maps."""
        return self.forward(x, w, b), self

    def forward(self, x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        """The convolution."""
        return box(self._forward, x, w, b)[0]

    def images(self, g: Tensor, w: Tensor) -> Tensor:
        """The transpose with respect to the images."""
        return box(self._of_images, g, w)[0]

    def weights(self, x: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
        """The transpose with respect to weights and biases."""
        w, b = box(self._of_weights, x, g)
        return w, b

    def _forward(self, x: Tensor, w: Tensor, b: Tensor) -> list[Tensor]:
        stride, padding, dilation, groups = self._settings
        if self._in_c:
            return [self._in_c.forward(x[0], w[0], b[0]).unsqueeze(0)]
        if self._by_windows:
            y = torch.addmm(b[0], self._by_windows.of(x[0]), w.reshape(self._kernel[0], -1).t())
            return [y.view(self._result).permute(0, 3, 1, 2).unsqueeze(0)]
        y = torch.conv2d(last(x[0]), w[0], b[0], stride, padding, dilation, groups)
        return [y.unsqueeze(0)]

    def _of_images(self, g: Tensor, w: Tensor) -> list[Tensor]:
        if self.winograd:
            return [self.winograd.images(g[0], w[0]).unsqueeze(0)]
        if self._by_windows:
            rows, w = self._rows(g), w.reshape(self._kernel[0], -1)
            # As the matrix lies in memory: otherwise it would be turned afterwards.
            windows = rows @ w if self._by_windows.by_rows else (w.mT @ rows.mT).mT
            return [self._by_windows.back(windows).unsqueeze(0)]
        x = empty_last(g, self._images)  # only its shape counts
        return [self._back(g[0], x, w[0], (True, False, False))[0].unsqueeze(0)]

    def _of_weights(self, x: Tensor, g: Tensor) -> list[Tensor]:
        if self._in_c:
            w = self._in_c.weights(x[0], g[0]).unsqueeze(0)
            return [w, self._rows(g).sum(0, keepdim=True)]
        if self._weights_by_windows:
            rows, windows = self._rows(g), self._weights_by_windows.of(x[0])
            lying = self._weights_by_windows.by_rows
            w = rows.mT @ windows if lying else (windows.mT @ rows).mT.contiguous()
            return [w.view(1, *self._kernel), rows.sum(0, keepdim=True)]
        if self._large:
            return self._of_large(x[0], g[0])
        like = empty_last(g, self._kernel)
        found = self._back(g[0], last(x[0]), like, (False, True, True))
        return [found[1].contiguous().unsqueeze(0), found[2].unsqueeze(0)]

    def _of_large(self, x: Tensor, g: Tensor) -> list[Tensor]:
        """The same as a matrix product: for weights larger than all maps, oneDNN takes longer."""
        stride, padding, dilation, _ = self._settings
        windows = F.unfold(x, self._kernel[2:], dilation, padding, stride)  # pyright: ignore[reportArgumentType]
        maps = g.transpose(0, 1).flatten(1)
        w = maps @ windows.transpose(0, 1).flatten(1).mT
        return [w.view(1, *self._kernel), maps.sum(1).unsqueeze(0)]

    def _rows(self, g: Tensor) -> Tensor:
        """Maps as a matrix: a pixel in each row."""
        return g[0].permute(0, 2, 3, 1).reshape(-1, self._kernel[0])

    def _maps(self) -> Pair:
        """Rows and columns of the maps."""
        stride, padding, dilation, _ = self._settings
        found: list[int] = []
        for axis in (0, 1):
            reach = dilation[axis] * (self._kernel[2 + axis] - 1)
            room = self._images[2 + axis] + 2 * padding[axis] - reach - 1
            found.append(room // stride[axis] + 1)
        return found[0], found[1]

    def _back(self, g: Tensor, x: Tensor, w: Tensor, wanted: tuple[bool, ...]) -> Sequence[Tensor]:
        back: Any = torch.ops.aten.convolution_backward
        stride, padding, dilation, groups = self._settings
        zero = (0, 0)
        return back(last(g), x, w, [len(w)], stride, padding, dilation, False, zero, groups, wanted)
