"""Normalisation by mean and variance, in any of its layers, with its first two derivatives."""

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Rows:
    """What is normalised together, and by which weights; see ``normalisation.c``."""

    rows: int
    apart: int
    segments: int
    step: int
    length: int
    wide: int
    period: int
    first: int
    next: int
    weights: int

    @classmethod
    def of_groups(cls, shape: Sequence[int], groups: int) -> "Rows":
        """Group normalisation of (N, C, …): each example's channels in groups."""
        each, size = shape[1] // groups, math.prod(shape[2:])
        return cls(shape[0] * groups, each * size, each, size, size, 0, groups, each, 1, shape[1])

    @classmethod
    def of_channels(cls, shape: Sequence[int]) -> "Rows":
        """Batch normalisation of (N, C, …): each channel of all examples."""
        channels, size = shape[1], math.prod(shape[2:])
        return cls(channels, size, shape[0], channels * size, size, 0, channels, 1, 0, channels)

    @classmethod
    def of_last(cls, shape: Sequence[int], axes: int) -> "Rows":
        """Layer normalisation over the last axes."""
        size = math.prod(shape[len(shape) - axes :])
        return cls(math.prod(shape) // size, size, 1, size, size, 1, 1, 0, 0, size)


class Normalisation:
    """y·w + b of the normalised y, for tensors of one shape.

    Args:
        functions: The library for their dtype.
        rows: What is normalised together.
        eps: What is added to the variance.
    """

    def __init__(self, functions: ctypes.CDLL, rows: Rows, eps: float) -> None:
        self._functions, self._eps = functions, eps
        numbers = [getattr(rows, name) for name in Rows.__dataclass_fields__]
        self._numbers = (ctypes.c_int64 * len(numbers))(*numbers)
        self._rows = ctypes.addressof(self._numbers)
        self._count, self._weights = rows.rows, rows.weights
        self._size = rows.rows * rows.segments * rows.length

    def forward(self, x: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        """The result, and mean and 1/σ of each row."""
        x, w, b = self._ready((x,), (w, b))
        y, rows = torch.empty_like(x), x.new_empty(2, self._count)
        self._functions.norm_forward(
            *(self._rows, x.data_ptr(), w.data_ptr(), b.data_ptr(), self._eps),
            *(y.data_ptr(), rows.data_ptr(), rows[1].data_ptr()),
        )
        return y, rows

    def back(self, g: Tensor, x: Tensor, rows: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The gradients of x, w and b where g is that of the result."""
        g, x, w = self._ready((g, x), (w,))
        found = torch.empty_like(x), torch.empty_like(w), torch.empty_like(w)
        given = g, x, rows, rows[1], w, *found
        self._functions.norm_back(self._rows, *(one.data_ptr() for one in given))
        return found

    def twice(
        self, v: Tensor, vw: Tensor, vb: Tensor, g: Tensor, x: Tensor, rows: Tensor, w: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The gradients of g, x and w where v, vw and vb are those of :meth:`back`'s results."""
        v, g, x, vw, vb, w = self._ready((v, g, x), (vw, vb, w))
        found = torch.empty_like(x), torch.empty_like(x), torch.empty_like(w)
        given = v, vw, vb, g, x, rows, rows[1], w, *found
        self._functions.norm_twice(self._rows, *(one.data_ptr() for one in given))
        return found

    def _ready(self, numbers: Sequence[Tensor], weights: Sequence[Tensor]) -> list[Tensor]:
        """The tensors as they must lie; refuses those that would be read beyond their ends."""
        sizes = *(self._size for _ in numbers), *(self._weights for _ in weights)
        found = [one.contiguous() for one in (*numbers, *weights)]
        if any(one.numel() != size for one, size in zip(found, sizes, strict=True)):
            raise ValueError(f"Normalisation of {self._size} numbers got {[*map(len, found)]}.")
        return found
