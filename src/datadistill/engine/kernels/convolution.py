"""Convolution, with max-pooling if wanted, as bilinear maps of images and weights."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..box import Boxed, box
from .library import Kernels, kernels

NARROW = 32  # channels; torch's own convolutions are faster of more, on either side
UNPOOLED = 16  # times the pixels of a kernel: as many products of channels, without pooling
LANES = 16  # images that are computed side by side, at most
LARGEST_POOL = 15  # its pixels are numbered in one byte


@dataclass(frozen=True)
class Pooling:
    """Max-pooling over square windows, and whether ReLU comes with it."""

    size: int
    stride: int
    padding: int = 0
    relu: bool = False


class Convolution:
    """A convolution of images (J, N, *image) by J networks' weights (J, *kernel), with stride 1.

    Args:
        dtype: The floating-point type of all of them.
        functions: The library for it.
        image: Channels, rows and columns of an image.
        kernel: Maps, channels, rows and columns of the weights.
        padding: Rows and columns of zeros around an image.
        pooling: What follows.

    Attributes:
        result: Maps, rows and columns of what comes out for one image.
        shape: The address of all these numbers, as C reads them.
    """

    def __init__(
        self,
        dtype: torch.dtype,
        functions: ctypes.CDLL,
        image: tuple[int, int, int],
        kernel: tuple[int, int, int, int],
        padding: tuple[int, int],
        pooling: Pooling | None,
    ) -> None:
        self._dtype, self._functions = dtype, functions
        self.image, self.kernel, self.pooling = image, kernel, pooling
        maps = tuple(image[i] + 2 * padding[i - 1] - kernel[i + 1] + 1 for i in (1, 2))
        pool = pooling or Pooling(1, 1)
        pooled = tuple((n + 2 * pool.padding - pool.size) // pool.stride + 1 for n in maps)
        self.result = (kernel[0], *pooled)
        numbers = (*image, kernel[0], *maps, *kernel[2:], *padding)
        numbers += (pool.size, pool.stride, pool.padding, *pooled, int(pool.relu))
        self._numbers = (ctypes.c_int64 * len(numbers))(*numbers)
        self.shape = ctypes.addressof(self._numbers)

    def __call__(self, x: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, "Chosen"]:
        """Returns S (w * x + b), and the linear maps that come with the selection S."""
        y, *index = box(self._choose, x, w, b)
        return y, Chosen(self, *index)

    def _choose(self, x: Tensor, w: Tensor, b: Tensor) -> list[Tensor]:
        """S (w * x + b), and the numbers of the pixels that S has chosen, if it chooses any."""
        if not self.pooling:
            return [self.forward(x, w, b, None, choose=True)]
        index = torch.empty(*x.shape[:2], *self.result, dtype=torch.uint8)
        return [self.forward(x, w, b, index, choose=True), index]

    def forward(
        self, x: Tensor, w: Tensor, b: Tensor, index: Tensor | None, *, choose: bool
    ) -> Tensor:
        """S (w * x + b), where S is chosen or given by ``index``."""
        self._check(x, self.image, w, self.kernel)
        x, w, b = _packed(x), w.contiguous(), b.contiguous()
        y = x.new_empty(*x.shape[:2], *self.result)
        self._call("forward", x, *_strides(x), w, b, y, index, int(choose))
        return y

    def images(self, g: Tensor, w: Tensor, index: Tensor | None) -> Tensor:
        """The gradient of the images where g is that of the result."""
        self._check(g, self.result, w, self.kernel)
        g, w = g.contiguous(), w.contiguous()
        x = g.new_empty(*g.shape[:2], *self.image)
        self._call("images", g, index, w, x)
        return x

    def weights(self, x: Tensor, g: Tensor, index: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The gradients of weights and biases where g is that of the result."""
        self._check(x, self.image, g, self.result)
        x, g = _packed(x), g.contiguous()
        w, b = g.new_empty(len(g), *self.kernel), g.new_empty(len(g), self.kernel[0])
        self._call("weights", x, *_strides(x), g, index, w, b)
        return w, b

    def _check(
        self, images: Tensor, each: tuple[int, ...], others: Tensor, other: tuple[int, ...]
    ) -> None:
        """Refuses tensors that the library would read beyond their ends."""
        fit = images.shape[2:] == each and others.shape[-len(other) :] == other
        if not fit or len(images) != len(others) or {images.dtype, others.dtype} != {self._dtype}:
            raise ValueError(
                f"A convolution for images {self.image} and weights {self.kernel} in {self._dtype} "
                f"got {images.dtype} of shape {tuple(images.shape)} and {others.dtype} of shape "
                f"{tuple(others.shape)}."
            )

    def _call(self, name: str, first: Tensor, *others: Tensor | int | None) -> None:
        addresses = [o.data_ptr() if isinstance(o, Tensor) else o for o in (first, *others)]
        if getattr(self._functions, name)(self.shape, *first.shape[:2], *addresses):
            raise MemoryError


@dataclass(frozen=True)
class Chosen:
    """The linear maps of a convolution whose pooling has chosen its pixels."""

    convolution: Convolution
    index: Tensor | None = None

    def forward(self, x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        """S (w * x + b)."""
        return self._box(self._forward, x, w, b)[0]

    def images(self, g: Tensor, w: Tensor) -> Tensor:
        """The transpose with respect to the images."""
        return self._box(self._images, g, w)[0]

    def weights(self, x: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
        """The transpose with respect to weights and biases."""
        w, b = self._box(self.convolution.weights, x, g)
        return w, b

    def _forward(
        self, x: Tensor, w: Tensor, b: Tensor, index: Tensor | None = None
    ) -> list[Tensor]:
        return [self.convolution.forward(x, w, b, index, choose=False)]

    def _images(self, g: Tensor, w: Tensor, index: Tensor | None = None) -> list[Tensor]:
        return [self.convolution.images(g, w, index)]

    def _box(self, function: Boxed, *tensors: Tensor) -> Sequence[Tensor]:
        return box(function, *tensors, *([] if self.index is None else [self.index]))


def make_convolution(
    image: tuple[int, int, int],
    kernel: tuple[int, int, int, int],
    padding: tuple[int, int],
    pooling: Pooling | None,
    like: Tensor,
) -> Convolution | None:
    """Returns a convolution for tensors like the one given, if it is faster than torch's."""
    found = kernels_for(kernel, padding, pooling, like)
    functions = found and found.functions
    return functions and Convolution(like.dtype, functions, image, kernel, padding, pooling)


def kernels_for(
    kernel: tuple[int, int, int, int],
    padding: tuple[int, int],
    pooling: Pooling | None,
    like: Tensor,
) -> Kernels | None:
    """The kernels of this machine for such a convolution; None if torch's own is as fast."""
    possible = (
        like.device.type == "cpu"
        and kernel[0] * kernel[1] <= NARROW**2
        and all(p < k for p, k in zip(padding, kernel[2:], strict=True))
        and (pooling is None or pooling.size <= LARGEST_POOL)
    )
    return kernels(like.dtype) if possible else None


def worth_while(kernel: tuple[int, ...], pooling: Pooling | None) -> bool:
    """Whether a convolution that there are kernels for is faster than torch's.

    With pooling it is: torch would compute the pixels that are not chosen.
    """
    return pooling is not None or kernel[0] * kernel[1] <= UNPOOLED * kernel[2] * kernel[3]


def _packed(x: Tensor) -> Tensor:
    """Images whose numbers lie one after the other; networks and images may lie anywhere."""
    return x if x.stride()[2:] == _plain(x.shape[2:]) else x.contiguous()


def _plain(shape: torch.Size) -> tuple[int, ...]:
    return (shape[1] * shape[2], shape[2], 1)


def _strides(x: Tensor) -> tuple[int, int]:
    return x.stride(0), x.stride(1)
