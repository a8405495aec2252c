"""Adam as a pure function: the outer optimiser."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

Tree = Mapping[str, Tensor]


@dataclass(frozen=True)
class AdamState:
    """The running moments of the gradient and the number of updates made."""

    count: int
    first: Tree
    second: Tree


def adam_init(parameters: Tree) -> AdamState:
    """Returns the state before the first update."""
    zeros = {name: torch.zeros_like(p) for name, p in parameters.items()}
    return AdamState(0, zeros, dict(zeros))


def adam(
    parameters: Tree,
    gradient: Tree,
    state: AdamState,
    lr: float,
    betas: tuple[float, float],
    own_lr: Mapping[str, float] | None = None,
    eps: float = 1e-8,
) -> tuple[dict[str, Tensor], AdamState]:
    """Makes one update (Kingma and Ba 2014, Algorithm 1).

    Args:
        parameters: What is learned.
        gradient: Its gradient.
        state: The state after the last update.
        lr: The learning rate.
        betas: The decay rates of the moments.
        own_lr: Learning rates of those parameters that have their own.
        eps: Keeps the quotient finite.
    """
    rates = {**dict.fromkeys(parameters, lr), **(own_lr or {})}
    b1, b2 = betas
    count = state.count + 1
    first = {n: b1 * state.first[n] + (1 - b1) * g for n, g in gradient.items()}
    second = {n: b2 * state.second[n] + (1 - b2) * g * g for n, g in gradient.items()}
    updated = {
        n: p
        - rates[n] * (first[n] / (1 - b1**count)) / ((second[n] / (1 - b2**count)).sqrt() + eps)
        for n, p in parameters.items()
    }
    return updated, AdamState(count, first, second)
