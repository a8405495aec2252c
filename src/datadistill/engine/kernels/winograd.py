"""Convolutions by 3 × 3 and 5 × 5 kernels with fewer products (Winograd).

Tiles of 2 × 2 pixels take 4 and 9 products for each pixel and pair of channels, where the usual
sums have 9 and 25. They are matrix products, with a few sums before and after, in one call of C
code: BLAS reaches half of the processor's peak with matrices as small as these. Rounding errors
grow little: in float32 those of 5 × 5 kernels about threefold.
"""

import ctypes
import math

import torch
from torch import Tensor

from .last import empty_last, last, numbers

Pair = tuple[int, int]

KERNELS = ((3, 3), (5, 5))
VECTOR = 16
"""Channels of images and maps are a multiple of it: no part of a vector is left over."""
TILES = 48
"""That are computed at a time: their numbers stay in the processor's cache."""


def worth_winograd(images: torch.Size, kernel: torch.Size, padding: Pair, maps: Pair) -> bool:
    """Whether it is faster than the usual sums, with a stride and a dilation of 1.

    Args:
        images: The shape of the images.
        kernel: That of the weights.
        padding: Rows and columns around the images.
        maps: Rows and columns of the maps.
    """
    channels, tiles = kernel[:2], images[0] * _tiles(maps)
    fits = kernel[2:] in KERNELS and max(padding) < kernel[2]
    whole = not any(count % VECTOR for count in channels)
    return fits and whole and 2 * tiles >= max(channels)  # or else the weights take too long


class Winograd:
    """The three maps of a convolution with a stride of 1, for images of one shape.

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
        self._numbers = (kernel[2] + 1) ** 2  # of a tile
        size, rest = (images[2], images[3]), (kernel[2] - 1 - one for one in padding)
        self._forth = numbers(kernel[2], *size, *padding, *maps)
        self._back = numbers(kernel[2], *maps, *rest, *size)
        self._tiles = images[0] * _tiles(maps), images[0] * _tiles(size)

    def forward(self, x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        """The convolution of images (N, C, H, W)."""
        x, y = self._ready(x, self._images), empty_last(x, self._maps)
        kernels = self._of_kernels(w, turned=False)
        self._convolved(self._forth, self._tiles[0], x, kernels, b.contiguous(), y)
        return y

    def images(self, g: Tensor, w: Tensor) -> Tensor:
        """The transpose with respect to the images: a convolution by the turned kernels."""
        g, x = self._ready(g, self._maps), empty_last(g, self._images)
        kernels, nothing = self._of_kernels(w, turned=True), g.new_zeros(self._images[1])
        self._convolved(self._back, self._tiles[1], g, kernels, nothing, x)
        return x

    def weights(self, x: Tensor, g: Tensor) -> Tensor:
        """The transpose with respect to the weights."""
        x, g = self._ready(x, self._images), self._ready(g, self._maps)
        (maps, channels), w = self._kernel[:2], x.new_empty(self._kernel)
        numbers = self._tiles[0], TILES, channels, maps
        room = self._room(x, maps * channels)
        self._call("weights", self._forth, *numbers, x, g, w, room)
        return w

    def _convolved(
        self,
        tiling: ctypes.Array[ctypes.c_int64],
        count: int,
        x: Tensor,
        kernels: Tensor,
        bias: Tensor,
        y: Tensor,
    ) -> None:
        """Writes the convolution of x by some kernels to y, which has so many tiles."""
        numbers = count, TILES, x.shape[1], y.shape[1]
        self._call("convolution", tiling, *numbers, x, kernels, bias, y, self._room(x))

    def _room(self, like: Tensor, besides: int = 0) -> Tensor:
        """For the numbers of the tiles that are computed at a time, and a cache line for each."""
        each = TILES * sum(self._kernel[:2]) + 2 * 64 // like.itemsize
        return like.new_empty(self._numbers * (each + besides))

    def _of_kernels(self, w: Tensor, *, turned: bool) -> Tensor:
        """The numbers of the weights, (…, channels, maps); if turned round, (…, maps, channels)."""
        if w.shape != self._kernel:
            raise ValueError(f"Convolution by {[*self._kernel]} got {[*w.shape]}.")
        found = w.new_empty(self._numbers * self._kernel[0] * self._kernel[1])
        sizes = *self._kernel[:2], int(turned)
        self._call("kernels", self._forth, *sizes, w.contiguous(), found)
        return found

    def _call(self, name: str, tiling: ctypes.Array[ctypes.c_int64], *given: int | Tensor) -> None:
        places = (one if isinstance(one, int) else one.data_ptr() for one in given)
        getattr(self._functions, f"winograd_{name}")(tiling, *places)

    def _ready(self, given: Tensor, shape: torch.Size) -> Tensor:
        """Images as they must lie; refuses those that would be read beyond their ends."""
        if given.shape != shape:
            raise ValueError(f"Convolution of {[*self._images]} got {[*given.shape]}.")
        return last(given)


def _tiles(maps: Pair) -> int:
    return math.ceil(maps[0] / 2) * math.ceil(maps[1] / 2)
