"""Layers for which there is something faster than what autograd makes of torch's own.

While a network is traced, these take the place of the functions of ``torch.nn.functional`` that it
calls, whichever modules call them: normalisations in C with their second derivatives, convolutions
as bilinear maps.
"""

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function
from torch.overrides import TorchFunctionMode

from ...core.network import Network
from ..bilinear import bilinear
from ..box import Boxed, box
from ..choice import may_use_kernels
from ..kernels import Kernels, kernels
from ..kernels.averaging import Averaging
from ..kernels.last import AveragingLast, NormalisationLast, Response, is_last
from ..kernels.library import functions_for
from ..kernels.normalisation import Normalisation, Rows
from ..kernels.pooling import Pooling
from .convolution import Settings, TorchConvolution
from .wide import WIDE, WideConvolution


class FastLayers(TorchFunctionMode):
    """Within it, torch's functions are replaced where there is something faster.

    Args:
        once: Whether results are differentiated once at most.

    Attributes:
        replaced: Whether the last one was.
        kernels: Whether any was by a C kernel.
    """

    def __init__(self, *, once: bool = False) -> None:
        super().__init__()
        self.replaced = self.kernels = False
        self._table = FASTER_ONCE if once else REPLACED

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """The function, or what replaces it."""
        faster = self._table.get(func)
        found = faster(*args, **(kwargs or {})) if faster else None
        self.replaced = found is not None
        self.kernels |= self.replaced and func is not torch.conv2d
        result = func(*args, **(kwargs or {})) if found is None else found
        if func in RELU and args and result is not args[0]:
            vars(result)[BEFORE_RELU] = args[0], *_versions(args[0], result)
        return result


_known: WeakKeyDictionary[Network, bool] = WeakKeyDictionary()


def kernels_of(network: Network) -> Kernels | None:
    """The C kernels that a network uses when it is traced, or why it does not; None without any."""
    if network.device.type != "cpu" or not may_use_kernels():
        return None
    if network not in _known:
        with torch.no_grad(), FastLayers() as layers:
            network(network.stack([network.weights]), network.example)
        _known[network] = layers.kernels
    return kernels(network.dtype) if _known[network] else None


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
    window = _pair(kernel_size)
    plain = _pair(stride or window) == window and _pair(padding) == (0, 0)
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
    if ceil_mode or return_indices or _pair(dilation) != (1, 1) or not is_last(x):
        return None
    functions = functions_for(x) if may_use_kernels() else None
    if functions is None:
        return None
    window, before = _pair(kernel_size), _before_relu(x)
    moves = _pair(stride or window), _pair(padding)
    made = Pooling(functions, x.shape, window, *moves, relu=before is not None)
    return _Chosen.apply(made, x if before is None else before)  # pyright: ignore[reportReturnType]


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


def local_response_norm(
    x: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor | None:
    """Local response normalisation."""
    functions = functions_for(x) if x.ndim == 4 and may_use_kernels() else None
    if functions is None:
        return None
    made = Response(functions, x.shape, size, alpha, beta, k)
    return _Responded.apply(made, x)  # pyright: ignore[reportReturnType]


def conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor | None:
    """A convolution."""
    if isinstance(padding, str) or x.ndim != 4:
        return None
    settings = Settings(_pair(stride), _pair(padding), _pair(dilation), groups)
    wide = weight.numel() >= WIDE and groups == 1
    made = (
        WideConvolution(x.shape, weight.shape, settings, x)
        if wide
        else TorchConvolution(x.shape, weight.shape, settings)
    )
    own = weight.new_zeros(len(weight)) if bias is None else bias
    return bilinear(made, x.unsqueeze(0), weight.unsqueeze(0), own.unsqueeze(0)).squeeze(0)


def wide_conv2d(x: Tensor, weight: Tensor, *args: Any, **kwargs: Any) -> Tensor | None:
    """A wide convolution."""
    return conv2d(x, weight, *args, **kwargs) if weight.numel() >= WIDE else None


def group_norm_last(x: Tensor, *args: Any, **kwargs: Any) -> Tensor | None:
    """Group normalisation of images whose channels lie last."""
    return group_norm(x, *args, **kwargs) if is_last(x) else None


RELU = {F.relu, torch.relu, Tensor.relu}
BEFORE_RELU = "before_relu"
"""The name under which its results remember what it was given."""

REPLACED: dict[object, Callable[..., Tensor | None]] = {
    F.layer_norm: layer_norm,
    torch.layer_norm: layer_norm,
    F.group_norm: group_norm,
    torch.group_norm: group_norm,
    F.batch_norm: batch_norm,
    F.instance_norm: instance_norm,
    F.avg_pool2d: avg_pool2d,
    F.adaptive_avg_pool2d: adaptive_avg_pool2d,
    F.local_response_norm: local_response_norm,
    F.max_pool2d: max_pool2d,
    torch.max_pool2d: max_pool2d,
    torch.conv2d: conv2d,
}
"""Torch's functions, with what replaces them; that gives None where there is nothing faster."""
_ONCE = (
    *(F.avg_pool2d, F.adaptive_avg_pool2d, F.local_response_norm),
    *(F.max_pool2d, torch.max_pool2d),
)
FASTER_ONCE: dict[object, Callable[..., Tensor | None]] = {
    **{one: REPLACED[one] for one in _ONCE},
    **dict.fromkeys((F.group_norm, torch.group_norm), group_norm_last),
    torch.conv2d: wide_conv2d,
}
"""Those that are faster even if they are differentiated once at most."""


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


def _pair(size: int | Sequence[int]) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (size[0], size[-1])
