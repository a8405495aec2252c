"""Derivatives of plain functions: gradients with respect to leaves, and their products."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from .network import Weights


def leaf(tensor: Tensor) -> Tensor:
    """A tensor of the same values from which gradients are asked, if it can have any."""
    return tensor.detach().requires_grad_(tensor.is_floating_point())


def leaves(tensors: Weights) -> Weights:
    """Named leaves of the same values."""
    return {name: leaf(tensor) for name, tensor in tensors.items()}


def gradient(function: Callable[[Weights], Tensor], weights: Weights) -> Weights:
    """∇ of a scalar function of the weights; differentiable again if gradients are enabled.

    The networks do not touch each other, so the gradient of the sum of their losses holds
    each network's own gradient.
    """
    create_graph = torch.is_grad_enabled()
    with torch.enable_grad():
        weights = {name: w if w.requires_grad else leaf(w) for name, w in weights.items()}
        found = torch.autograd.grad(
            function(weights),
            list(weights.values()),
            create_graph=create_graph,
            materialize_grads=True,
        )
    return dict(zip(weights, found, strict=True))


def products(
    outputs: Sequence[Tensor], of: Sequence[Tensor], v: Sequence[Tensor] | None = None
) -> list[Tensor]:
    """Σ ⟨v, ∂outputs/∂leaf⟩ for each leaf, v = 1 by default; zeros for leaves without any."""
    wanted = [one for one in of if one.requires_grad]
    v = [torch.ones_like(one) for one in outputs] if v is None else v
    pairs = [(one, own) for one, own in zip(outputs, v, strict=True) if one.requires_grad]
    if not pairs or not wanted:
        return [torch.zeros_like(one) for one in of]
    made, along = zip(*pairs, strict=True)
    found = iter(torch.autograd.grad(made, wanted, along, materialize_grads=True))
    return [next(found) if one.requires_grad else torch.zeros_like(one) for one in of]
