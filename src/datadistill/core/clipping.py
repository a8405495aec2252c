"""Clipping: gradients that are too long are scaled down."""

from collections.abc import Mapping

import torch
from torch import Tensor

Tree = Mapping[str, Tensor]

NORM_DECAY = 0.9
"""Of the running mean of the gradient's norm."""


def length(gradient: Tree) -> Tensor:
    """The norm of all tensors together."""
    return torch.linalg.vector_norm(
        torch.stack([torch.linalg.vector_norm(g.double()) for g in gradient.values()])
    )


def clipped(
    gradient: Tree, norm: float, factor: float | None, mean: float | None
) -> tuple[Tree, float | None]:
    """The gradient, no longer than a multiple of the running mean of its norm; and that mean.

    Args:
        gradient: The gradient.
        norm: Its norm.
        factor: The multiple; None: no limit.
        mean: The running mean so far, if there is one.
    """
    if factor is None:
        return gradient, mean
    if mean is None or norm == 0:
        return gradient, mean or norm
    most = factor * mean
    if norm > most:
        gradient, norm = {n: g * (most / norm) for n, g in gradient.items()}, most
    return gradient, NORM_DECAY * mean + (1 - NORM_DECAY) * norm


def mean_clipped(each: Tree, most: float | None) -> dict[str, Tensor]:
    """The mean over networks of their gradients (J, …), each no longer than ``most``.

    Args:
        each: The gradient of each network's loss.
        most: The largest norm of one network's gradient; None: no limit.
    """
    if most is not None:
        norms = [torch.linalg.vector_norm(g.double().flatten(1), dim=1) for g in each.values()]
        shares = most / torch.linalg.vector_norm(torch.stack(norms), dim=0).clamp(most)
        each = {n: torch.einsum("j...,j->j...", g, shares.to(g)) for n, g in each.items()}
    return {name: g.mean(0) for name, g in each.items()}
