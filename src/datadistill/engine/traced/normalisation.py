"""Normalisations in C, with their second derivatives, in place of torch's functions.

Each gives None where there is nothing faster.
"""

from collections.abc import Sequence
from typing import Any

from torch import Tensor
from torch.autograd import Function

from ..box import box
from ..choice import may_use_kernels
from ..kernels.last import NormalisationLast, Response, is_last
from ..kernels.library import functions_for
from ..kernels.normalisation import Normalisation, Rows


def layer_norm(
    x: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor | None:
    """Layer normalisation."""
    return _normalised(Rows.of_last(x.shape, len(normalized_shape)), eps, x, weight, bias)


def group_norm(
    x: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor | None:
    """Group normalisation."""
    rows = num_groups if is_last(x) else Rows.of_groups(x.shape, num_groups)
    return _normalised(rows, eps, x, weight, bias)


def batch_norm(
    x: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,  # noqa: ARG001 - there is nothing running
    eps: float = 1e-5,
) -> Tensor | None:
    """Batch normalisation by the statistics of the batch."""
    if not training or running_mean is not None or running_var is not None:
        return None
    return _normalised(None if is_last(x) else Rows.of_channels(x.shape), eps, x, weight, bias)


def instance_norm(
    x: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,  # noqa: ARG001 - there is nothing running
    eps: float = 1e-5,
) -> Tensor | None:
    """Instance normalisation by the statistics of each image."""
    if not use_input_stats or running_mean is not None or running_var is not None:
        return None
    rows = x.shape[1] if is_last(x) else Rows.of_groups(x.shape, x.shape[1])
    return _normalised(rows, eps, x, weight, bias)


def group_norm_last(x: Tensor, *args: Any, **kwargs: Any) -> Tensor | None:
    """Group normalisation of images whose channels lie last."""
    return group_norm(x, *args, **kwargs) if is_last(x) else None


def local_response_norm(
    x: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor | None:
    """Local response normalisation."""
    functions = functions_for(x) if x.ndim == 4 and may_use_kernels() else None
    if functions is None:
        return None
    made = Response(functions, x.shape, size, alpha, beta, k)
    return _Responded.apply(made, x)  # pyright: ignore[reportReturnType]


def _normalised(
    rows: Rows | int | None, eps: float, x: Tensor, weight: Tensor | None, bias: Tensor | None
) -> Tensor | None:
    """Normalised by rows; with channels last by so many groups of them, or each by all images."""
    functions = functions_for(x) if may_use_kernels() else None
    if functions is None:
        return None
    if isinstance(rows, Rows):
        if rows.segments * rows.length == 1:  # of one number torch refuses
            return None
        made, count = Normalisation(functions, rows, eps), rows.weights
    else:
        made, count = NormalisationLast(functions, x.shape, rows, eps), x.shape[1]
    w = x.new_ones(count) if weight is None else weight.flatten()
    b = x.new_zeros(count) if bias is None else bias.flatten()
    return _Normalised.apply(made, x, w, b)  # pyright: ignore[reportReturnType]


_AnyNormalisation = Normalisation | NormalisationLast


class _Normalised(Function):
    @staticmethod
    def forward(ctx: Any, made: _AnyNormalisation, x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        y, rows = box(made.forward, x, w, b)
        ctx.made = made
        ctx.save_for_backward(x, rows, w)
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return None, *_Back.apply(ctx.made, gradients[0], *ctx.saved_tensors)  # pyright: ignore[reportGeneralTypeIssues]


class _Back(Function):
    @staticmethod
    def forward(
        ctx: Any,
        made: _AnyNormalisation,
        g: Tensor,
        x: Tensor,
        rows: Tensor,
        w: Tensor,
    ) -> tuple[Tensor, ...]:
        ctx.made = made
        ctx.save_for_backward(g, x, rows, w)
        return (*box(made.back, g, x, rows, w),)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        dg, dx, dw = box(ctx.made.twice, *gradients, *ctx.saved_tensors)
        return None, dg, dx, None, dw


class _Responded(Function):
    @staticmethod
    def forward(ctx: Any, made: Response, x: Tensor) -> Tensor:
        y, sums = box(made.forward, x)
        ctx.made = made
        ctx.save_for_backward(x, sums)
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return None, _ResponseBack.apply(ctx.made, gradients[0], *ctx.saved_tensors)


class _ResponseBack(Function):
    @staticmethod
    def forward(ctx: Any, made: Response, g: Tensor, x: Tensor, sums: Tensor) -> Tensor:
        ctx.made = made
        ctx.save_for_backward(g, x, sums)
        return box(made.back, g, x, sums)[0]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        dg, dx = box(ctx.made.twice, gradients[0], *ctx.saved_tensors)
        return None, dg, dx, None
