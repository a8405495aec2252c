"""Max-pooling of images whose channels lie last in memory, with ReLU if wanted."""

import ctypes

import torch
from torch import Tensor

from .last import empty_last, last, numbers

Pair = tuple[int, int]
_INDEX = {torch.float32: torch.int32, torch.float64: torch.int64}


class Pooling:
    """The largest pixel of each window of images of one shape, linear once it is chosen.

    Args:
        functions: The library for their dtype.
        shape: That of the images.
        window: Rows and columns of a window.
        stride: How far it moves.
        padding: How far it reaches beyond the images.
        relu: Whether pixels that are not positive are taken as 0.
    """

    def __init__(
        self,
        functions: ctypes.CDLL,
        shape: torch.Size,
        window: Pair,
        stride: Pair,
        padding: Pair,
        *,
        relu: bool,
    ) -> None:
        self._functions, self._shape = functions, shape
        high, wide = (
            (shape[i + 2] + 2 * padding[i] - window[i]) // stride[i] + 1 for i in range(2)
        )
        self._pooled = torch.Size((*shape[:2], high, wide))
        self._numbers = numbers(*shape, *window, *stride, *padding, high, wide, int(relu))
        self._pools = ctypes.addressof(self._numbers)

    def choose(self, x: Tensor) -> list[Tensor]:
        """The pixels that are chosen, and their numbers in the windows."""
        x, y = self._ready(x, self._shape), empty_last(x, self._pooled)
        index = empty_last(x.new_empty(0, dtype=_INDEX[x.dtype]), self._pooled)
        self._functions.pool_choose(self._pools, x.data_ptr(), y.data_ptr(), index.data_ptr())
        return [y, index]

    def select(self, x: Tensor, index: Tensor) -> list[Tensor]:
        """The pixels of other images at these numbers."""
        return [self._call("pool_select", self._ready(x, self._shape), index, self._pooled)]

    def put_back(self, g: Tensor, index: Tensor) -> list[Tensor]:
        """Its transpose: images with g where it was chosen."""
        return [self._call("pool_put_back", self._ready(g, self._pooled), index, self._shape)]

    def _call(self, name: str, given: Tensor, index: Tensor, found: torch.Size) -> Tensor:
        index, result = self._ready(index, self._pooled), empty_last(given, found)
        addresses = (one.data_ptr() for one in (given, index, result))
        getattr(self._functions, name)(self._pools, *addresses)
        return result

    def _ready(self, given: Tensor, shape: torch.Size) -> Tensor:
        """Images as they must lie; refuses those that would be read beyond their ends."""
        if given.shape != shape:
            raise ValueError(f"Pooling of {[*self._shape]} got {[*given.shape]}.")
        return last(given)
