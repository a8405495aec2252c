"""Pooling in C, with its second derivatives, in place of torch's functions.

Each gives None where there is nothing faster. Max-pooling takes a ReLU before it along.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function

from ..box import Boxed, box
from ..choice import may_use_kernels
from ..kernels.averaging import Averaging
from ..kernels.last import AveragingLast, is_last
from ..kernels.library import functions_for
from ..kernels.pooling import Pooling

RELU = {F.relu, torch.relu, Tensor.relu}
BEFORE_RELU = "before_relu"
"""The name under which its results remember what it was given."""


def avg_pool2d(
    x: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,  # noqa: ARG001 - there is no padding
    divisor_override: int | None = None,
) -> Tensor | None:
    """Average pooling over windows that do not overlap."""
    window = pair(kernel_size)
    plain = pair(stride or window) == window and pair(padding) == (0, 0)
    if not plain or ceil_mode or divisor_override:
        return None
    return _averaged(x, window)


def max_pool2d(
    x: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | None:
    """Max-pooling, of images whose channels lie last.

    Of what ReLU has made, the largest is what ReLU makes of the largest, and that is less work.
    """
    if ceil_mode or return_indices or pair(dilation) != (1, 1) or not is_last(x):
        return None
    functions = functions_for(x) if may_use_kernels() else None
    if functions is None:
        return None
    window, before = pair(kernel_size), _before_relu(x)
    moves = pair(stride or window), pair(padding)
    made = Pooling(functions, x.shape, window, *moves, relu=before is not None)
    return _Chosen.apply(made, x if before is None else before)  # pyright: ignore[reportReturnType]


def adaptive_avg_pool2d(x: Tensor, output_size: object) -> Tensor | None:
    """The same, by how many windows there are."""
    match (output_size, output_size) if isinstance(output_size, int) else output_size:
        case (int(high), int(wide)) if high and wide and x.ndim == 4:
            height, width = x.shape[2:]
            if high * wide == 1:  # torch's own changes strides in place, which cannot be traced
                return x.mean((2, 3), keepdim=True)
            fits = height % high == width % wide == 0
            return _averaged(x, (height // high, width // wide)) if fits else None
        case _:
            return None


def remember(result: Tensor, given: Tensor) -> None:
    """Has a result of ReLU remember what ReLU was given."""
    vars(result)[BEFORE_RELU] = given, *_versions(given, result)


def _before_relu(x: Tensor) -> Tensor | None:
    """What ReLU was given, if x is its result, or that of a stack whose only network this is.

    Not if either has been changed in place since.
    """
    y = x if x._base is None else x._base
    before, *versions = vars(y).get(BEFORE_RELU, (None,))
    if before is None or versions != _versions(before, y):
        return None
    alone = y.shape == (1, *x.shape) and y.stride()[1:] == x.stride()
    return before if y is x else before.squeeze(0) if alone else None


def _versions(*tensors: Tensor) -> list[int]:
    """Numbers that change with the tensors' contents."""
    return [-1 if one.is_inference() else one._version for one in tensors]


def _averaged(x: Tensor, window: tuple[int, int]) -> Tensor | None:
    fits = x.ndim == 4 and window[0] <= x.shape[2] and window[1] <= x.shape[3]
    if not fits or not may_use_kernels():
        return None
    functions = functions_for(x)
    if functions is None:
        return None
    made = (AveragingLast if is_last(x) else Averaging)(functions, x.shape, window)
    return _Linear.apply(made.average, made.spread_out, x)  # pyright: ignore[reportReturnType]


class _Chosen(Function):
    """Max-pooling."""

    @staticmethod
    def forward(ctx: Any, made: Pooling, x: Tensor) -> Tensor:
        y, index = box(made.choose, x)
        ctx.made = made
        ctx.save_for_backward(index)
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        made: Pooling = ctx.made
        back = _Selected.apply(made.put_back, made.select, gradients[0], *ctx.saved_tensors)
        return None, back


class _Selected(Function):
    """What max-pooling does once it has chosen, or the transpose of that."""

    @staticmethod
    def forward(ctx: Any, function: Boxed, transpose: Boxed, x: Tensor, index: Tensor) -> Tensor:
        ctx.maps = transpose, function
        ctx.save_for_backward(index)
        return box(function, x, index)[0]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return None, None, _Selected.apply(*ctx.maps, gradients[0], *ctx.saved_tensors), None


class _Linear(Function):
    """A linear map and its transpose."""

    @staticmethod
    def forward(ctx: Any, function: Boxed, transpose: Boxed, x: Tensor) -> Tensor:
        ctx.maps = transpose, function
        return box(function, x)[0]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return None, None, _Linear.apply(*ctx.maps, gradients[0])


def pair(size: int | Sequence[int]) -> tuple[int, int]:
    """Height and width."""
    return (size, size) if isinstance(size, int) else (size[0], size[-1])
