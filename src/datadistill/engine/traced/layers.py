"""Layers for which there is something faster than what autograd makes of torch's own.

While a network is traced, these take the place of the functions of ``torch.nn.functional`` that it
calls, whichever modules call them: normalisations in C with their second derivatives; convolutions
as bilinear maps, in C where they are narrow.
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
from ..bilinear import Maps, bilinear
from ..box import box
from ..choice import may_use_kernels
from ..kernels import Kernels, kernels, make_convolution, worth_while
from ..kernels.normalisation import Normalisation, Rows, make_normalisation


class FastLayers(TorchFunctionMode):
    """Within it, torch's functions are replaced where there is something faster.

    Attributes:
        used: Whether any was.
    """

    def __init__(self) -> None:
        super().__init__()
        self.used = False

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """The function, or what replaces it."""
        found = REPLACED[func](*args, **(kwargs or {})) if func in REPLACED else None
        self.used |= found is not None
        return func(*args, **(kwargs or {})) if found is None else found


_known: WeakKeyDictionary[Network, bool] = WeakKeyDictionary()


def kernels_of(network: Network) -> Kernels | None:
    """The C kernels that a network uses when it is traced, or why it does not; None without any."""
    if network.device.type != "cpu" or not may_use_kernels():
        return None
    if network not in _known:
        with torch.no_grad(), FastLayers() as layers:
            network(network.stack([network.weights]), network.example)
        _known[network] = layers.used
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
    return _normalised(Rows.of_groups(x.shape, num_groups), eps, x, weight, bias)


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
    return _normalised(Rows.of_channels(x.shape), eps, x, weight, bias)


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
    return _normalised(Rows.of_groups(x.shape, x.shape[1]), eps, x, weight, bias)


def conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor | None:
    """A convolution that is narrow, or whose channels are in groups."""
    if isinstance(padding, str) or x.ndim != 4:
        return None
    stride, padding, dilation = (_pair(one) for one in (stride, padding, dilation))
    own = weight.new_zeros(len(weight)) if bias is None else bias
    made = None
    if groups > 1:
        made = _Grouped(x.shape, weight.shape, (stride, padding, dilation), groups)
    elif (stride, dilation) == ((1, 1), (1, 1)) and worth_while(tuple(weight.shape), None):
        image, kernel = (x.shape[1], x.shape[2], x.shape[3]), tuple(weight.shape)
        made = may_use_kernels() and make_convolution(image, kernel, padding, None, x)  # pyright: ignore[reportArgumentType]
    if not made:
        return None
    return bilinear(made, x.unsqueeze(0), weight.unsqueeze(0), own.unsqueeze(0)).squeeze(0)


REPLACED: dict[object, Callable[..., Tensor | None]] = {
    F.layer_norm: layer_norm,
    torch.layer_norm: layer_norm,
    F.group_norm: group_norm,
    torch.group_norm: group_norm,
    F.batch_norm: batch_norm,
    F.instance_norm: instance_norm,
    torch.conv2d: conv2d,
}
"""Torch's functions, with what replaces them; that gives None where there is nothing faster."""


class _Grouped:
    """A convolution in groups, e.g. depthwise, as bilinear maps by torch, for one network."""

    def __init__(
        self,
        images: torch.Size,
        kernel: torch.Size,
        settings: tuple[tuple[int, int], tuple[int, int], tuple[int, int]],
        groups: int,
    ) -> None:
        self._images, self._kernel, self._settings, self._groups = images, kernel, settings, groups

    def __call__(self, x: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, Maps]:
        return self.forward(x, w, b), self

    def forward(self, x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        """The convolution."""
        stride, padding, dilation = self._settings
        one = torch.conv2d(x[0], w[0], b[0], stride, padding, dilation, self._groups)
        return one.unsqueeze(0)

    def images(self, g: Tensor, w: Tensor) -> Tensor:
        """The transpose with respect to the images."""
        x = g.new_empty(1).expand(self._images)
        return self._back(g[0], x, w[0], (True, False, False))[0].unsqueeze(0)

    def weights(self, x: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
        """The transpose with respect to weights and biases."""
        found = self._back(g[0], x[0], g.new_empty(1).expand(self._kernel), (False, True, True))
        return found[1].unsqueeze(0), found[2].unsqueeze(0)

    def _back(self, g: Tensor, x: Tensor, w: Tensor, wanted: tuple[bool, ...]) -> Sequence[Tensor]:
        back: Any = torch.ops.aten.convolution_backward
        return back(g, x, w, [len(w)], *self._settings, False, (0, 0), self._groups, wanted)


def _normalised(
    rows: Rows, eps: float, x: Tensor, weight: Tensor | None, bias: Tensor | None
) -> Tensor | None:
    if rows.segments * rows.length == 1 or not may_use_kernels():  # of one number torch refuses
        return None
    made = make_normalisation(rows, eps, x)
    if made is None:
        return None
    w = x.new_ones(rows.weights) if weight is None else weight.flatten()
    b = x.new_zeros(rows.weights) if bias is None else bias.flatten()
    return _Normalised.apply(made, x, w, b)  # pyright: ignore[reportReturnType]


class _Normalised(Function):
    @staticmethod
    def forward(ctx: Any, made: Normalisation, x: Tensor, w: Tensor, b: Tensor) -> Tensor:
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
        ctx: Any, made: Normalisation, g: Tensor, x: Tensor, rows: Tensor, w: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.made = made
        ctx.save_for_backward(g, x, rows, w)
        return (*box(made.back, g, x, rows, w),)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        dg, dx, dw = box(ctx.made.twice, *gradients, *ctx.saved_tensors)
        return None, dg, dx, None, dw


def _pair(size: int | Sequence[int]) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (size[0], size[-1])
