"""Layers of images whose channels lie last in memory, as torch's convolutions like them best.

Normalisation and means over windows as in :mod:`.normalisation` and :mod:`.averaging`.
"""

import ctypes
import math
from collections.abc import Sequence

import torch
from torch import Tensor


def is_last(x: Tensor) -> bool:
    """Whether the channels of images (N, C, H, W) lie last, and in no other way."""
    return x.ndim == 4 and not x.is_contiguous() and x.permute(0, 2, 3, 1).is_contiguous()


def last(x: Tensor) -> Tensor:
    """The same images (N, C, H, W) with their channels last."""
    if x.is_contiguous(memory_format=torch.channels_last):
        return x
    return x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)


def empty_last(like: Tensor, shape: Sequence[int]) -> Tensor:
    """Images (N, C, H, W) to be written, with their channels last."""
    images, channels, height, width = shape
    return like.new_empty(images, height, width, channels).permute(0, 3, 1, 2)


def numbers(*given: int) -> ctypes.Array[ctypes.c_int64]:
    """What a C function reads as a struct of whole numbers."""
    return (ctypes.c_int64 * len(given))(*given)


class NormalisationLast:
    """y·w + b of the normalised y, for images of one shape.

    Args:
        functions: The library for their dtype.
        shape: That of the images.
        groups: How many groups of channels are normalised together; None normalises each channel
            by all images.
        eps: What is added to the variance.
    """

    def __init__(
        self, functions: ctypes.CDLL, shape: torch.Size, groups: int | None, eps: float
    ) -> None:
        self._functions, self._shape, self._eps = functions, shape, eps
        images, channels, pixels = shape[0], shape[1], math.prod(shape[2:])
        blocks = (images, pixels) if groups else (1, images * pixels)
        self._numbers = numbers(*blocks, channels, groups or channels)
        self._blocks = ctypes.addressof(self._numbers)
        self._count = blocks[0] * (groups or channels)

    def forward(self, x: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        """The result, and mean and 1/σ of each group."""
        x, w, b = self._ready((x,), (w, b))
        y, rows, room = torch.empty_like(x), x.new_empty(2, self._count), self._room(x, 2)
        self._functions.last_forward(
            *(self._blocks, x.data_ptr(), w.data_ptr(), b.data_ptr(), self._eps),
            *(one.data_ptr() for one in (y, rows, rows[1], room)),
        )
        return y, rows

    def back(self, g: Tensor, x: Tensor, rows: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The gradients of x, w and b where g is that of the result."""
        g, x, w = self._ready((g, x), (w,))
        found = torch.empty_like(x), torch.empty_like(w), torch.empty_like(w)
        given = g, x, rows, rows[1], w, *found, self._room(x, 6)
        self._functions.last_back(self._blocks, *(one.data_ptr() for one in given))
        return found

    def twice(
        self, v: Tensor, vw: Tensor, vb: Tensor, g: Tensor, x: Tensor, rows: Tensor, w: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The gradients of g, x and w where v, vw and vb are those of :meth:`back`'s results."""
        v, g, x, vw, vb, w = self._ready((v, g, x), (vw, vb, w))
        found = torch.empty_like(x), torch.empty_like(x), torch.empty_like(w)
        given = v, vw, vb, g, x, rows, rows[1], w, *found, self._room(x, 13)
        self._functions.last_twice(self._blocks, *(one.data_ptr() for one in given))
        return found

    def _room(self, like: Tensor, times: int) -> Tensor:
        return like.new_empty(times * self._shape[1])

    def _ready(self, images: Sequence[Tensor], weights: Sequence[Tensor]) -> list[Tensor]:
        """The tensors as they must lie; refuses those that would be read beyond their ends."""
        fit = all(one.shape == self._shape for one in images)
        if not fit or any(one.shape != self._shape[1:2] for one in weights):
            raise ValueError(f"Normalisation of {[*self._shape]} got {[*images[0].shape]}.")
        return [*map(last, images), *(one.contiguous() for one in weights)]


class AveragingLast:
    """Means over windows of images of one shape.

    Args:
        functions: The library for their dtype.
        shape: That of the images.
        window: Rows and columns of a window. What is left over at their ends has none.
    """

    def __init__(self, functions: ctypes.CDLL, shape: torch.Size, window: tuple[int, int]) -> None:
        self._functions, self._shape = functions, shape
        self._pooled = torch.Size((*shape[:2], shape[2] // window[0], shape[3] // window[1]))
        self._numbers = numbers(*shape, *window)
        self._windows = ctypes.addressof(self._numbers)

    def average(self, x: Tensor) -> list[Tensor]:
        """The mean of each window."""
        return [self._call("last_average", x, self._shape, self._pooled)]

    def spread_out(self, g: Tensor) -> list[Tensor]:
        """Its transpose: the gradient of x where g is that of the means."""
        return [self._call("last_spread_out", g, self._pooled, self._shape)]

    def _call(self, name: str, given: Tensor, shape: torch.Size, found: torch.Size) -> Tensor:
        if given.shape != shape:
            raise ValueError(f"Averaging of {[*shape]} got {[*given.shape]}.")
        given, result = last(given), empty_last(given, found)
        getattr(self._functions, name)(self._windows, given.data_ptr(), result.data_ptr())
        return result


class _Numbers(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("pixels", "channels", "before", "after")),
        *((name, ctypes.c_double) for name in ("a", "beta", "k")),
    )


class Response:
    """Local response normalisation of images of one shape.

    Args:
        functions: The library for their dtype.
        shape: That of the images.
        size: How many neighbouring channels are summed up.
        alpha: The factor of their mean square.
        beta: The power.
        k: What is added.
    """

    def __init__(
        self,
        functions: ctypes.CDLL,
        shape: torch.Size,
        size: int,
        alpha: float,
        beta: float,
        k: float,
    ) -> None:
        self._functions, self._shape = functions, shape
        pixels, around = shape[0] * math.prod(shape[2:]), (size // 2, (size - 1) // 2)
        self._numbers = _Numbers(pixels, shape[1], *around, alpha / size, beta, k)
        self._response = ctypes.addressof(self._numbers)
        self._room = 4 * shape[1] + 2 * size

    def forward(self, x: Tensor) -> list[Tensor]:
        """The result, and the sums that it is divided by the power of."""
        return self._call("response_forward", 2, x)

    def back(self, g: Tensor, x: Tensor, sums: Tensor) -> list[Tensor]:
        """The gradient of x where g is that of the result."""
        return self._call("response_back", 1, g, x, sums)

    def twice(self, v: Tensor, g: Tensor, x: Tensor, sums: Tensor) -> list[Tensor]:
        """The gradients of g and x where v is that of :meth:`back`'s result."""
        return self._call("response_twice", 2, v, g, x, sums)

    def _call(self, name: str, results: int, *given: Tensor) -> list[Tensor]:
        if any(one.shape != self._shape for one in given):
            raise ValueError(f"Normalisation of {[*self._shape]} got {[*given[0].shape]}.")
        given = (*map(last, given),)
        found = [torch.empty_like(given[0]) for _ in range(results)]
        used = (*given, *found, given[0].new_zeros(self._room))
        getattr(self._functions, name)(self._response, *(one.data_ptr() for one in used))
        return found
