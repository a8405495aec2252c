"""Convolutions by 3 × 3 kernels with 4 products where there would be 9 (Winograd).

They take 16 matrix products for tiles of 2 × 2 pixels, and a few sums before and after. In
float32 they are as exact as the usual sums: all factors are 1 and 1/2.
"""

import ctypes
from collections.abc import Iterator

import torch
from torch import Tensor

from .last import empty_last, last, numbers

Pair = tuple[int, int]

KERNEL = (3, 3)
FEWEST_CHANNELS = 16
"""Of images and maps: with fewer, as much time goes into sums as is saved."""
CACHED_BYTES = 2**20
"""What the numbers of some tiles may take that are computed at a time."""
FEWEST_TILES = 32
"""At a time."""
NUMBERS = 16
"""Of a tile."""


def worth_winograd(images: torch.Size, kernel: torch.Size, padding: Pair, maps: Pair) -> bool:
    """Whether it is faster than the usual sums, with a stride and a dilation of 1.

    Args:
        images: The shape of the images.
        kernel: That of the weights.
        padding: Rows and columns around the images.
        maps: Rows and columns of the maps.
    """
    channels = kernel[:2]
    tiles = images[0] * _tiles(maps)
    fits = kernel[2:] == KERNEL and max(padding) <= 2 and min(channels) >= FEWEST_CHANNELS
    return fits and 2 * tiles >= max(channels)  # otherwise the sums of the weights take too long


class Winograd:
    """The three maps of a convolution with a stride of 1, for images of one shape.

    Args:
        functions: The library for their dtype.
        images: The shape of the images.
        kernel: That of the weights.
        padding: Rows and columns around the images, at most 2.
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
        size, rest = (images[2], images[3]), (2 - padding[0], 2 - padding[1])
        self._forth = numbers(*size, *padding, *maps)
        self._back = numbers(*maps, *rest, *size)
        self._tiles = images[0] * _tiles(maps), images[0] * _tiles(size)

    def forward(self, x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        """The convolution of images (N, C, H, W)."""
        x, y = self._ready(x, self._images), empty_last(x, self._maps)
        kernels = self._numbers_of(w, turned=False).mT
        self._convolved(self._forth, self._tiles[0], x, kernels, b.contiguous(), y)
        return y

    def images(self, g: Tensor, w: Tensor) -> Tensor:
        """The transpose with respect to the images: a convolution by the turned kernels."""
        g, x = self._ready(g, self._maps), empty_last(g, self._images)
        kernels = self._numbers_of(w, turned=True)
        nothing = g.new_zeros(self._images[1])
        self._convolved(self._back, self._tiles[1], g, kernels, nothing, x)
        return x

    def weights(self, x: Tensor, g: Tensor) -> Tensor:
        """The transpose with respect to the weights."""
        x, g = self._ready(x, self._images), self._ready(g, self._maps)
        maps, channels = self._kernel[:2]
        zeros, total = x.new_zeros(max(maps, channels)), x.new_zeros(NUMBERS, maps, channels)
        for begin, end in self._chunks(self._tiles[0]):
            windows = x.new_empty(NUMBERS, end - begin, channels)
            tiles = x.new_empty(NUMBERS, end - begin, maps)
            self._call("windows", self._forth, channels, begin, end, x, zeros, windows)
            self._call("tiles", self._forth, maps, begin, end, g, zeros, tiles)
            total.baddbmm_(tiles.mT, windows)
        w = x.new_empty(self._kernel)
        self._functions.winograd_kernels_back(maps * channels, total.data_ptr(), w.data_ptr())
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
        """Writes the convolution of x by some kernels to y."""
        _, channels, maps = kernels.shape
        zeros = x.new_zeros(channels)
        for begin, end in self._chunks(count):
            windows = x.new_empty(NUMBERS, end - begin, channels)
            self._call("windows", tiling, channels, begin, end, x, zeros, windows)
            products = torch.bmm(windows, kernels)
            self._call("maps", tiling, maps, begin, end, products, bias, y)

    def _chunks(self, count: int) -> Iterator[tuple[int, int]]:
        """The first and last of the tiles that are computed at a time."""
        each = NUMBERS * sum(self._kernel[:2]) * 4
        most = max(FEWEST_TILES, CACHED_BYTES // each)
        size = -(-count // -(-count // most))  # as many in each
        return ((begin, min(begin + size, count)) for begin in range(0, count, size))

    def _numbers_of(self, w: Tensor, *, turned: bool) -> Tensor:
        """Those of the weights: (16, maps, channels)."""
        if w.shape != self._kernel:
            raise ValueError(f"Convolution by {[*self._kernel]} got {[*w.shape]}.")
        w, found = w.contiguous(), w.new_empty(NUMBERS, *self._kernel[:2])
        count = self._kernel[0] * self._kernel[1]
        self._functions.winograd_kernels(count, int(turned), w.data_ptr(), found.data_ptr())
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
    return ((maps[0] + 1) // 2) * ((maps[1] + 1) // 2)
