"""Convolutions of images of few channels, such as colours, without a matrix of their windows.

The gradient of the images is not among them: it is as fast with such a matrix.
"""

import ctypes
import math

import torch
from torch import Tensor

from .last import empty_last, last, numbers

Pair = tuple[int, int]

MOST_CHANNELS = 4
"""Of the images."""
VECTOR = 16
"""Maps are a multiple of it: no part of a vector is left over."""


def worth_direct(kernel: torch.Size, padding: Pair) -> bool:
    """Whether this is how to compute a convolution with a stride and a dilation of 1.

    Args:
        kernel: The shape of the weights.
        padding: Rows and columns around the images.
    """
    fits = padding[0] < kernel[2] and padding[1] < kernel[3]
    return fits and kernel[1] <= MOST_CHANNELS and kernel[0] % VECTOR == 0


class Direct:
    """A convolution with a stride of 1 of images of one shape, and its gradient of the weights.

    Args:
        functions: The library for their dtype.
        images: The shape of the images.
        kernel: That of the weights.
        padding: Rows and columns around the images, less than those of the kernel.
        maps: Rows and columns of the maps.
    """

    def __init__(
        self,
        functions: ctypes.CDLL,
        images: torch.Size,
        kernel: torch.Size,
        padding: Pair,
        maps: Pair,
    ) -> None:
        self._functions, self._images, self._kernel = functions, images, kernel
        self._maps = torch.Size((images[0], kernel[0], *maps))
        self._numbers = numbers(*images, kernel[0], *kernel[2:], *padding, *maps)
        self._shape = ctypes.addressof(self._numbers)
        around = kernel[2] - 1, kernel[3] - 1
        self._padded = images[1] * (maps[0] + around[0]) * (maps[1] + around[1])

    def forward(self, x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        """The convolution of images (N, C, H, W)."""
        self._check(x, self._images)
        y, room = empty_last(x, self._maps), x.new_empty(self._padded)
        given = x, self._turned(w), b.contiguous(), y, room
        self._functions.direct_forward(self._shape, numbers(*x.stride()), *_places(given))
        return y

    def weights(self, x: Tensor, g: Tensor) -> Tensor:
        """The transpose with respect to the weights."""
        self._check(x, self._images)
        self._check(g, self._maps)
        w = x.new_zeros(math.prod(self._kernel[1:]), self._kernel[0])
        given = x, last(g), w, x.new_empty(self._padded)
        self._functions.direct_weights(self._shape, numbers(*x.stride()), *_places(given))
        return w.mT.contiguous().view(self._kernel)

    def _turned(self, w: Tensor) -> Tensor:
        """The weights as a matrix (numbers of a window, maps)."""
        if w.shape != self._kernel:
            raise ValueError(f"Convolution by {[*self._kernel]} got {[*w.shape]}.")
        return w.reshape(len(w), -1).mT.contiguous()

    def _check(self, given: Tensor, shape: torch.Size) -> None:
        """Refuses images that would be read beyond their ends."""
        if given.shape != shape:
            raise ValueError(f"Convolution of {[*self._images]} got {[*given.shape]}.")


def _places(tensors: tuple[Tensor, ...]) -> list[int]:
    return [one.data_ptr() for one in tensors]
