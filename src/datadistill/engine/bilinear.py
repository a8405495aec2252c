"""Layers that are linear in their inputs and in their weights, differentiable any number of times.

Such a layer y = w·x + b comes with two more maps: the gradient of the inputs is g·w, that of
weights and biases x·g. The derivatives of each of the three are the other two, so that they are
all that backward passes of any order need.
"""

from typing import Any, Protocol

import torch
from torch import Tensor
from torch.autograd import Function

_LEAF = "torch::autograd::AccumulateGrad"


class Maps(Protocol):
    """The three maps of a layer, of J networks: x (J, N, …), w (J, …), b (J, …) and g like y."""

    def forward(self, x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        """Y = w·x + b."""
        ...

    def images(self, g: Tensor, w: Tensor) -> Tensor:
        """The gradient of x."""
        ...

    def weights(self, x: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
        """The gradients of w and b."""
        ...


class Layer(Protocol):
    """A layer that is bilinear once it has seen its inputs."""

    def __call__(self, x: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, Maps]:
        """Returns y and the maps that give its derivatives."""
        ...


def bilinear(layer: Layer, x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """Applies a layer."""
    return _Forward.apply(layer, x, w, b)  # pyright: ignore[reportReturnType]


class _Forward(Function):
    @staticmethod
    def forward(ctx: Any, layer: Layer, x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        y, ctx.maps = layer(x, w, b)
        ctx.save_for_backward(x, w)
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        (x, w), g = ctx.saved_tensors, gradients[0]
        dx = _Images.apply(ctx.maps, g, w) if _inputs_wanted(ctx) else None
        dw, db = _Weights.apply(ctx.maps, x, g) if any(ctx.needs_input_grad[2:]) else (None, None)
        return None, dx, dw, db


class _Images(Function):
    @staticmethod
    def forward(ctx: Any, maps: Maps, g: Tensor, w: Tensor) -> Tensor:
        ctx.maps = maps
        ctx.save_for_backward(g, w)
        return maps.images(g, w)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        (g, w), x = ctx.saved_tensors, gradients[0]
        nothing = w.new_zeros(w.shape[:2])
        dg = _Forward.apply(_Given(ctx.maps), x, w, nothing) if ctx.needs_input_grad[1] else None
        dw = _Weights.apply(ctx.maps, x, g)[0] if ctx.needs_input_grad[2] else None
        return None, dg, dw


class _Weights(Function):
    @staticmethod
    def forward(ctx: Any, maps: Maps, x: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
        ctx.maps = maps
        ctx.save_for_backward(x, g)
        return maps.weights(x, g)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        (x, g), (w, b) = ctx.saved_tensors, gradients
        dx = _Images.apply(ctx.maps, g, w) if _inputs_wanted(ctx) else None
        dg = _Forward.apply(_Given(ctx.maps), x, w, b) if ctx.needs_input_grad[2] else None
        return None, dx, dg


class _Given:
    """Maps that are known, as a layer."""

    def __init__(self, maps: Maps) -> None:
        self._maps = maps

    def __call__(self, x: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, Maps]:
        return self._maps.forward(x, w, b), self._maps


def _inputs_wanted(ctx: Any) -> bool:
    """Whether this backward pass continues to the first tensor that the function took.

    ``needs_input_grad`` tells only whether any pass could: that of the weights alone would compute
    gradients of the images as well, only to throw them away.
    """
    before: Any = ctx.next_functions[0][0]
    if before is None or before.name() == _LEAF:  # of leaves the engine does not tell
        return ctx.needs_input_grad[1]
    return torch._C._will_engine_execute_node(before)  # pyright: ignore[reportPrivateUsage]
