"""The losses of layers one after the other, and their gradients, without autograd.

The outer loss is differentiated once, and its weights are all that it is differentiated by. So a
pass forward keeps the inputs of the layers with weights, and nothing else that a graph would keep;
the pass back frees them as it goes, and adds gradients to those of other examples.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..core.network import Loss, Weights
from .bilinear import Maps
from .layers import Compute, Linear, Relu, WithWeights, flattening, same

Back = Callable[[Tensor, Weights], Tensor]
"""(gradient of a layer's result, sums of the gradients of weights) → gradient of what it was given.

It adds to the sums.
"""


def chain(layers: Sequence[Compute]) -> "Chain | None":
    """Layers of which each takes the result of the one before; None if one is not known here."""
    layers = [layer for layer in layers if layer is not same]
    known = all(isinstance(one, WithWeights | Relu) or one is flattening for one in layers)
    weighted = [n for n, one in enumerate(layers) if isinstance(one, WithWeights)]
    return Chain(layers, weighted[0]) if known and weighted else None


@dataclass(frozen=True)
class Chain:
    """Layers one after the other.

    Attributes:
        layers: The layers.
        first: The number of the first one with weights, where a pass back ends.
    """

    layers: Sequence[Compute]
    first: int

    def add_gradients(
        self, weights: Weights, x: Tensor, labels: Tensor, loss: Loss, share: float, to: Weights
    ) -> Tensor:
        """Returns ``share`` times the losses (J,), and adds the gradients of these to others.

        Args:
            weights: The weights of J networks.
            x: Their inputs (J, N, …).
            labels: The labels of these, the same for all networks.
            loss: The loss of one network.
            share: The share of the losses in those that gradients are wanted of.
            to: The gradients to add to, of those weights that are wanted.
        """
        backs: list[Back] = []
        with torch.no_grad():
            for n, layer in enumerate(self.layers):
                x, back = _step(layer, weights, x, inputs_wanted=n > self.first)
                if n >= self.first:
                    backs.append(back)
        x.requires_grad_()
        with torch.enable_grad():
            losses = share * torch.stack([loss(one, labels) for one in x])
            (g,) = torch.autograd.grad(losses.sum(), x)
        with torch.no_grad():
            while backs:  # each with what it has kept
                g = backs.pop()(g, to)
        return losses.detach()


def _step(
    layer: Compute, weights: Weights, x: Tensor, *, inputs_wanted: bool
) -> tuple[Tensor, Back]:
    """A layer's result, and the way back."""
    if isinstance(layer, WithWeights):
        return _with_weights(layer, weights, x, inputs_wanted=inputs_wanted)
    y = layer(weights, x)
    if isinstance(layer, Relu):
        return y, lambda g, _: torch.ops.aten.threshold_backward(g, y, 0)
    shape = x.shape
    return y, lambda g, _: g.reshape(shape)


def _with_weights(
    layer: WithWeights, weights: Weights, x: Tensor, *, inputs_wanted: bool
) -> tuple[Tensor, Back]:
    w, b = layer.names.of(weights)
    y, maps = layer.layer(x, w, b)

    def back(g: Tensor, to: Weights) -> Tensor:
        _add(maps, x, g, to.get(layer.names.weight), to.get(layer.names.bias or ""))
        return maps.images(g, w) if inputs_wanted else g

    return y, back


def _add(maps: Maps, x: Tensor, g: Tensor, w: Tensor | None, b: Tensor | None) -> None:
    """Adds the gradients of weights and biases to their sums."""
    if isinstance(maps, Linear):
        if w is not None:
            w.baddbmm_(g.mT, x)
        if b is not None:
            b += g.sum(1)
    elif w is not None or b is not None:
        for total, own in zip((w, b), maps.weights(x, g), strict=True):
            if total is not None:
                total += own
