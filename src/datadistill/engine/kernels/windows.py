"""All windows of images that a kernel moves over as a matrix, and the transpose of that."""

import ctypes

import torch
from torch import Tensor

from .last import empty_last, numbers

Pair = tuple[int, int]


class Windows:
    """The windows of images of one shape: a matrix (pixels of the maps, numbers of a window).

    Numbers of a window are ordered as in the kernel's weights (channels, rows, columns).

    Args:
        functions: The library for their dtype.
        images: The shape of the images.
        kernel: Rows and columns of the kernel.
        moves: Its stride, padding and dilation.
        maps: Rows and columns of the maps.
        by_rows: Whether windows lie in memory one after the other; otherwise the same number of
            all windows does, which takes less time for images of few channels.

    Attributes:
        by_rows: The same.
    """

    def __init__(
        self,
        functions: ctypes.CDLL,
        images: torch.Size,
        kernel: Pair,
        moves: tuple[Pair, Pair, Pair],
        maps: Pair,
        *,
        by_rows: bool,
    ) -> None:
        self._functions, self._images, self.by_rows = functions, images, by_rows
        self._size = images[0] * maps[0] * maps[1], images[1] * kernel[0] * kernel[1]
        pairs = (n for pair in (kernel, *moves, maps) for n in pair)
        self._numbers = numbers(*images, *pairs, int(by_rows))
        self._moves = ctypes.addressof(self._numbers)

    def of(self, x: Tensor) -> Tensor:
        """The windows of images."""
        if x.shape != self._images:
            raise ValueError(f"Windows of {[*self._images]} got {[*x.shape]}.")
        matrix = x.new_empty(self._size if self.by_rows else self._size[::-1])
        apart = numbers(*x.stride())
        self._functions.gather_windows(self._moves, apart, x.data_ptr(), matrix.data_ptr())
        return matrix if self.by_rows else matrix.mT

    def back(self, matrix: Tensor) -> Tensor:
        """Its transpose: images whose pixels are the sums over all windows that they are in."""
        if matrix.shape != self._size:
            raise ValueError(f"Windows {[*self._size]} of {[*self._images]}: {[*matrix.shape]}.")
        matrix = matrix.contiguous() if self.by_rows else matrix.mT.contiguous()
        x = empty_last(matrix, self._images) if self.by_rows else matrix.new_empty(self._images)
        apart = numbers(*x.zero_().stride())
        self._functions.scatter_windows(self._moves, apart, x.data_ptr(), matrix.data_ptr())
        return x
