"""Layers one after the other, in C: whole updates, and passes over real data, in one call each.

An update of a narrow network by a few images is many small operations, and Python takes longer to
call them than they take. Nor does anything here keep what a graph of autograd would keep.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..core.network import Loss, Weights
from .kernels import ChainKernel, Convolution, Kept, Part, kernels
from .layers import Compute, Linear, Names, Relu, WithWeights, flattening, same

Shapes = Mapping[str, Sequence[int]]
"""The shapes of a network's weights."""


@dataclass(frozen=True)
class Chain:
    """Layers one after the other.

    Attributes:
        names: What weights and biases of the layers are called, in turn; None where there are none.
        kernel: The code.
    """

    names: Sequence[str | None]
    kernel: ChainKernel

    def add_loss(
        self,
        weights: Weights,
        x: Tensor,
        labels: Tensor,
        loss: Loss,
        share: float,
        to: Weights,
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
        outputs, kept = self.kernel.forward(x, self.tensors(weights))
        outputs.requires_grad_()
        with torch.enable_grad():
            losses = share * torch.stack([loss(one, labels) for one in outputs])
            (g,) = torch.autograd.grad(losses.sum(), outputs)
        self.kernel.back(kept, g, self.sums(to))
        return losses.detach()

    def add_gradient(self, weights: Weights, x: Tensor, labels: Tensor, to: Weights) -> Kept:
        """Adds the gradient of the mean cross-entropy; returns what :meth:`add_products` needs."""
        return self.kernel.gradient(x, labels, self.tensors(weights), self.sums(to))

    def add_products(
        self, kept: Kept, labels: Tensor, u: Weights, to: Weights
    ) -> tuple[Tensor, Tensor]:
        """Adds the gradients of ⟨u, ∇ℓ⟩ with respect to weights; returns those of x and labels."""
        return self.kernel.products(kept, labels, self.tensors(u), self.sums(to))

    def tensors(self, tree: Weights) -> list[Tensor | None]:
        """The tensors of the layers in turn; None where there is none."""
        return [tree[name].contiguous() if name in tree else None for name in self.names]

    def sums(self, tree: Weights) -> list[Tensor | None]:
        """The same of gradients that are added to, where they lie."""
        found = [tree.get(name) if name else None for name in self.names]
        assert all(one is None or one.is_contiguous() for one in found)
        return found


def chain(layers: Sequence[Compute], shapes: Shapes, like: Tensor) -> Chain | None:
    """Layers of which each takes the result of the one before; None if one is not known here.

    Args:
        layers: The layers.
        shapes: The shapes of all weights.
        like: A tensor like those that are computed.
    """
    functions = kernels(like.dtype).functions if like.device.type == "cpu" else None
    names: list[Names] = []
    parts: list[Part] = []
    for layer in layers:
        if isinstance(layer, WithWeights) and isinstance(layer.layer, Linear | Convolution):
            names.append(layer.names)
            parts.append(_part(layer.layer, tuple(shapes[layer.names.weight])))
        elif isinstance(layer, Relu) and parts and not parts[-1].relu:
            parts[-1] = parts[-1]._replace(relu=True)
        elif layer is not flattening and layer is not same:
            return None
    if functions is None or not parts:
        return None
    return Chain([name for pair in names for name in pair], ChainKernel(functions, parts))


def _part(layer: Linear | Convolution, kernel: tuple[int, ...]) -> Part:
    """A layer without what may follow it."""
    if isinstance(layer, Linear):
        return Part(None, kernel, kernel[1], relu=False)
    channels, rows, columns = layer.image
    return Part(layer, kernel, channels * rows * columns, relu=False)
