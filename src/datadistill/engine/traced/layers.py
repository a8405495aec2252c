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
from torch.overrides import TorchFunctionMode

from ...core.network import Network
from ..bilinear import Layer, bilinear
from ..choice import may_use_kernels
from ..kernels import Convolution, Kernels, kernels, make_convolution
from .convolution import Settings, TorchConvolution
from .normalisation import (
    batch_norm,
    group_norm,
    group_norm_last,
    instance_norm,
    layer_norm,
    local_response_norm,
)
from .pooling import RELU, adaptive_avg_pool2d, avg_pool2d, max_pool2d, pair, remember
from .wide import WIDE, WideConvolution

NARROWEST = 4
"""Channels on either side of a narrow convolution: with fewer there is nothing to gain in C."""
NARROW_PIXELS = 400
"""Of its images: of more, torch's convolutions are as fast."""


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
        in_c = func is not torch.conv2d or _is_in_c(*args, **(kwargs or {}))
        self.kernels |= self.replaced and in_c
        result = func(*args, **(kwargs or {})) if found is None else found
        if func in RELU and args and result is not args[0]:
            remember(result, args[0])
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


def conv2d(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, *moves: Any, **named: Any
) -> Tensor | None:
    """A convolution."""
    layer = _convolution(x, weight, *moves, **named)
    if layer is None:
        return None
    own = weight.new_zeros(len(weight)) if bias is None else bias
    return bilinear(layer, x.unsqueeze(0), weight.unsqueeze(0), own.unsqueeze(0)).squeeze(0)


def _is_in_c(x: Tensor, weight: Tensor, bias: object = None, *moves: Any, **named: Any) -> bool:  # noqa: ARG001
    """Whether a convolution is computed by C kernels."""
    return isinstance(_convolution(x, weight, *moves, **named), Convolution)


def _convolution(
    x: Tensor,
    weight: Tensor,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Layer | None:
    """What computes a convolution."""
    if isinstance(padding, str) or x.ndim != 4:
        return None
    settings = Settings(pair(stride), pair(padding), pair(dilation), groups)
    if weight.numel() >= WIDE and groups == 1:
        return WideConvolution(x.shape, weight.shape, settings, x)
    return _narrow(x, weight, settings) or TorchConvolution(x.shape, weight.shape, settings)


def _narrow(x: Tensor, weight: Tensor, settings: Settings) -> Convolution | None:
    """A convolution in C, where that is faster."""
    (channels, high, wide), (maps, _, rows, columns) = x.shape[1:], weight.shape
    plain = (settings.stride, settings.dilation, settings.groups) == ((1, 1), (1, 1), 1)
    worth = min(channels, maps) >= NARROWEST and rows * columns > 1 and high * wide <= NARROW_PIXELS
    if not plain or not worth or not may_use_kernels():
        return None
    image, kernel = (channels, high, wide), (maps, channels, rows, columns)
    return make_convolution(image, kernel, settings.padding, None, x)


def conv2d_once(x: Tensor, weight: Tensor, *args: Any, **kwargs: Any) -> Tensor | None:
    """A convolution that is wide, or of images of one channel."""
    worth = weight.numel() >= WIDE or (weight.ndim == 4 and x.ndim == 4 and x.shape[1] == 1)
    return conv2d(x, weight, *args, **kwargs) if worth else None


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
    torch.conv2d: conv2d_once,
}
"""Those that are faster even if they are differentiated once at most."""
