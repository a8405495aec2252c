"""Telling a trained module from one that has just been made."""

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase  # pyright: ignore[reportPrivateUsage]
from torch.nn.modules.conv import _ConvNd  # pyright: ignore[reportPrivateUsage]
from torch.nn.parameter import is_lazy


def looks_trained(module: nn.Module) -> bool:
    """Whether a module has surely been trained, as far as its biases and scales tell.

    A new layer has biases that are constant, or uniform within ±1/√(inputs); its normalisation has
    constant scales. The weights themselves tell nothing: constructors draw them in many ways.
    """
    return any(_normalises_otherwise(m) or _has_other_biases(m) for m in module.modules())


def _normalises_otherwise(layer: nn.Module) -> bool:
    if not isinstance(layer, _NormBase | nn.LayerNorm | nn.GroupNorm):
        return False
    # torch's types leave out that both are None without an affine map.
    scales: list[Tensor | None] = [layer.weight, layer.bias]
    return any(_varies(scale) for scale in scales if scale is not None)


def _has_other_biases(layer: nn.Module) -> bool:
    if not isinstance(layer, nn.Linear | _ConvNd):
        return False
    bias: Tensor | None = layer.bias
    if bias is None or not _varies(bias):
        return False
    bound = layer.weight[0].numel() ** -0.5
    return float(bias.detach().abs().max()) > 1.001 * bound


def _varies(values: Tensor) -> bool:
    return not is_lazy(values) and bool((values != values.flatten()[0]).any())
