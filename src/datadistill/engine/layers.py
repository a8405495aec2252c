"""The layers that are known, each computed for J networks at once.

A layer's result is (J, N, …), whatever ways its numbers lie in memory. None of these layers mixes
examples. A single network is taken out of its stack by ``squeeze``: the gradient of ``maps[0]``
would be copied into a stack of zeros, with the channels first.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..core.network import Weights
from .bilinear import Layer, Maps, bilinear

RELU: set[object] = {F.relu, torch.relu, "relu", nn.ReLU}
ELEMENTWISE: set[object] = {
    *RELU,
    *(torch.tanh, torch.sigmoid, F.leaky_relu, F.elu, F.gelu, F.softplus),
    *("tanh", "sigmoid"),
    *(nn.Tanh, nn.Sigmoid, nn.LeakyReLU, nn.ELU, nn.GELU, nn.Softplus),
}
SAME: set[object] = {nn.Identity, nn.Dropout, nn.Dropout2d}
MAX_POOLING: set[object] = {F.max_pool2d, nn.MaxPool2d}
POOLING: set[object] = {
    *MAX_POOLING,
    *(F.avg_pool2d, F.adaptive_avg_pool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d),
}
FLATTENING: set[object] = {torch.flatten, "flatten", nn.Flatten}
ADDING: set[object] = {operator.add, torch.add}

Compute = Callable[..., Tensor]
"""(weights of J networks, results of earlier layers) → the layer's result."""


class Names(NamedTuple):
    """What the weights of a layer are called in those of the network."""

    weight: str
    bias: str | None

    def of(self, weights: Weights) -> tuple[Tensor, Tensor]:
        """The layer's weight and its bias, which is 0 where it has none."""
        weight = weights[self.weight]
        return weight, weights[self.bias] if self.bias else weight.new_zeros(weight.shape[:2])


def convolution(layer: nn.Conv2d, names: Names) -> Compute:
    """A convolution of any kind: all networks' channels side by side."""
    stride, padding, dilation = layer.stride, layer.padding, layer.dilation

    def compute(weights: Weights, maps: Tensor) -> Tensor:
        weight = weights[names.weight]
        networks = len(weight)
        bias = weights[names.bias].flatten() if names.bias else None
        same = maps.stride(0) == 0 and layer.groups == 1  # of the same images for all, once
        if networks == 1:
            maps = maps.squeeze(0)
        else:
            maps = maps[0] if same else maps.transpose(0, 1).flatten(1, 2)
            maps = _channels_last(maps)
        groups = 1 if same else layer.groups * networks
        maps = F.conv2d(maps, weight.flatten(0, 1), bias, stride, padding, dilation, groups)
        return maps.unflatten(1, (networks, -1)).transpose(0, 1)

    return compute


@dataclass(frozen=True)
class WithWeights:
    """A layer that is bilinear: linear, or a convolution for which there is a kernel."""

    layer: Layer
    names: Names

    def __call__(self, weights: Weights, x: Tensor) -> Tensor:
        """The layer's result."""
        return bilinear(self.layer, x, *self.names.of(weights))


def linear(names: Names) -> WithWeights:
    """A linear layer of rows."""
    return WithWeights(_LINEAR, names)


class Linear:
    """The maps of a linear layer, in the order of factors that takes BLAS least time.

    Few rows stay on the left: with few columns on the right it takes up to five times as long.
    """

    def __call__(self, x: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, Maps]:
        """Y and the maps."""
        return self.forward(x, w, b), self

    def forward(self, x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        """Y = w·x + b."""
        return torch.baddbmm(b.unsqueeze(1), x, w.mT)

    def images(self, g: Tensor, w: Tensor) -> Tensor:
        """The gradient of x."""
        return torch.bmm(g, w)

    def weights(self, x: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
        """The gradients of w and b."""
        return torch.bmm(g.mT, x), g.sum(1)


_LINEAR = Linear()


def group_norm(layer: nn.GroupNorm, names: Names | None) -> Compute:
    """Group normalisation, with weight and bias if it has names for them."""

    def compute(weights: Weights, maps: Tensor) -> Tensor:
        shape, networks = maps.shape, len(maps)
        if names and names.bias and networks == 1:
            weight, bias = (weights[name].squeeze(0) for name in (names.weight, names.bias))
            alone = F.group_norm(maps.squeeze(0), layer.num_groups, weight, bias, layer.eps)
            return alone.unsqueeze(0)
        maps = F.group_norm(maps.flatten(0, 1), layer.num_groups, eps=layer.eps)
        maps = maps.view(shape)
        if names is None or names.bias is None:
            return maps
        each = (networks, 1, shape[2], *[1] * (len(shape) - 3))
        weight, bias = weights[names.weight], weights[names.bias]
        return torch.addcmul(bias.view(each), maps, weight.view(each))

    return compute


def response_norm(layer: nn.LocalResponseNorm, like: Tensor, channels: int) -> Compute:
    """Local response normalisation, its sums over neighbouring channels by a matrix of ones."""
    distance = torch.arange(channels)[None] - torch.arange(channels)[:, None]
    before, after = layer.size // 2, (layer.size - 1) // 2
    near = (distance >= -before) & (distance <= after)
    band = layer.alpha / layer.size * near.to(like)

    def compute(_: Weights, maps: Tensor) -> Tensor:
        if len(maps) == 1:
            return layer(maps.squeeze(0)).unsqueeze(0)
        squares = maps.square().flatten(3)
        sums = torch.matmul(band, squares).view(maps.shape)
        if layer.beta == 0.75:  # a root of a root is much faster than a power
            root = (layer.k + sums).rsqrt()
            return maps * (root * root.sqrt())
        return maps * (layer.k + sums).pow(-layer.beta)

    return compute


@dataclass(frozen=True)
class Relu:
    """ReLU, in place of its source where nothing else needs that."""

    may_overwrite: bool

    def __call__(self, _: Weights, result: Tensor) -> Tensor:
        """The layer's result."""
        overwrite = self.may_overwrite and not torch.is_grad_enabled()
        return result.relu_() if overwrite else result.relu()


def elementwise(function: Callable[[Tensor], Tensor]) -> Compute:
    """A function of each number alone."""

    def compute(_: Weights, result: Tensor) -> Tensor:
        return function(result)

    return compute


def same(_: Weights, result: Tensor) -> Tensor:
    """What there is: dropout is off outside training mode."""
    return result


def flattening(_: Weights, result: Tensor) -> Tensor:
    """Each example as one row."""
    return result.flatten(2)


def addition(_: Weights, one: Tensor, other: Tensor) -> Tensor:
    """The sum of two results."""
    return one + other


def pooling(function: Callable[[Tensor], Tensor]) -> Compute:
    """A function of maps (N, C, H, W) that treats all channels alike."""

    def compute(_: Weights, maps: Tensor) -> Tensor:
        networks = len(maps)
        if maps.is_contiguous():
            return function(maps.flatten(0, 1)).unflatten(0, (networks, -1))
        together = function(maps.transpose(0, 1).flatten(1, 2))
        return together.unflatten(1, (networks, -1)).transpose(0, 1)

    return compute


def _channels_last(images: Tensor) -> Tensor:
    """The same images with the channels last in memory.

    ``contiguous(memory_format=torch.channels_last)`` would leave images of a single channel as
    they are, whose strides then tell a convolution nothing.
    """
    last = images.permute(0, 2, 3, 1)
    if not last.is_contiguous():
        last = last.clone(memory_format=torch.contiguous_format)
    return last.permute(0, 3, 1, 2)
