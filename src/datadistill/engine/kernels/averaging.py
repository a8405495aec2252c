"""Means over windows of images that do not overlap: average pooling, and its transpose."""

import ctypes
import math

import torch
from torch import Tensor


class Averaging:
    """Means over windows of images (…, height, width) of one shape.

    Args:
        functions: The library for their dtype.
        shape: That of the images.
        window: Rows and columns of a window. What is left over at their ends has none.
    """

    def __init__(self, functions: ctypes.CDLL, shape: torch.Size, window: tuple[int, int]) -> None:
        self._functions, self._shape = functions, shape
        height, width = shape[-2:]
        self._pooled = torch.Size((*shape[:-2], height // window[0], width // window[1]))
        numbers = (math.prod(shape[:-2]), height, width, *window)
        self._numbers = (ctypes.c_int64 * len(numbers))(*numbers)
        self._windows = ctypes.addressof(self._numbers)

    def average(self, x: Tensor) -> list[Tensor]:
        """The mean of each window."""
        return [self._call("average", x, self._shape, self._pooled)]

    def spread_out(self, g: Tensor) -> list[Tensor]:
        """Its transpose: the gradient of x where g is that of the means."""
        return [self._call("spread_out", g, self._pooled, self._shape)]

    def _call(self, name: str, given: Tensor, shape: torch.Size, found: torch.Size) -> Tensor:
        if given.shape != shape:
            raise ValueError(f"Averaging of {[*shape]} got {[*given.shape]}.")
        given, result = given.contiguous(), given.new_empty(found)
        getattr(self._functions, name)(self._windows, given.data_ptr(), result.data_ptr())
        return result
