"""Update rules: how a learner changes its weights on one step of distilled data."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ..progress import Progress, ProgressCallback, silent
from .distilled import Step, Steps
from .engine import Engine
from .network import Loss, Network, Weights


class Learner(NamedTuple):
    """J networks in training: their weights, and what the update rule carries along."""

    weights: Weights
    velocity: Weights

    def leaves(self) -> list[Tensor]:
        """All tensors in a fixed order."""
        return [*self.weights.values(), *self.velocity.values()]

    def rebuild(self, leaves: list[Tensor]) -> "Learner":
        """The inverse of :meth:`leaves`, with this learner's names."""
        count = len(self.weights)
        return Learner(
            dict(zip(self.weights, leaves[:count], strict=True)),
            dict(zip(self.velocity, leaves[count:], strict=True)),
        )


StepLoss = Callable[[Weights, Step], Tensor]
"""ℓ(x̃, θ): the losses (J,) of J networks on one step."""

Update = Callable[[Learner, Step], Learner]
"""θ_t, step → θ_{t+1}."""


@dataclass(frozen=True)
class GradientDescent:
    """θ_{t+1} = θ_t − η̃_t ∇ℓ(x̃_t, θ_t), with heavy-ball momentum if asked for.

    Under ``torch.no_grad()`` an update keeps no graph; otherwise it is itself
    differentiable with respect to the learner and the step.

    Attributes:
        momentum: μ of v ← μ v + ∇ℓ, θ ← θ − η̃ v; 0 is plain gradient descent.
    """

    momentum: float = 0.0

    def start(self, weights: Weights) -> Learner:
        """Returns a learner at its initial weights θ₀."""
        if not self.momentum:
            return Learner(weights, {})
        return Learner(weights, {name: torch.zeros_like(w) for name, w in weights.items()})

    def __call__(self, loss: StepLoss, learner: Learner, step: Step) -> Learner:
        """Makes one update."""
        direction = gradient(lambda weights: loss(weights, step).sum(), learner.weights)
        if self.momentum:
            direction = {n: self.momentum * learner.velocity[n] + g for n, g in direction.items()}
        weights = {
            name: w - step.learning_rate.to(w.dtype) * direction[name]
            for name, w in learner.weights.items()
        }
        return Learner(weights, direction if self.momentum else {})


def gradient(function: Callable[[Weights], Tensor], weights: Weights) -> Weights:
    """∇ of a scalar function of the weights; differentiable again if gradients are enabled.

    The networks do not touch each other, so the gradient of the sum of their losses holds
    each network's own gradient.
    """
    create_graph = torch.is_grad_enabled()
    with torch.enable_grad():
        weights = {
            name: w if w.requires_grad else w.detach().requires_grad_()
            for name, w in weights.items()
        }
        gradients = torch.autograd.grad(
            function(weights),
            list(weights.values()),
            create_graph=create_graph,
            materialize_grads=True,
        )
    return dict(zip(weights, gradients, strict=True))


def update_of(network: Network | Engine, loss: Loss, rule: GradientDescent) -> Update:
    """The update that learners of this architecture make with a rule and an inner loss."""

    def step_loss(weights: Weights, step: Step) -> Tensor:
        return network.losses(weights, step.inputs, step.labels, loss)

    return lambda learner, step: rule(step_loss, learner, step)


def train(
    update: Update, learner: Learner, steps: Steps, progress: ProgressCallback = silent
) -> Learner:
    """Makes all updates of the schedule, θ₀ → θ_T, keeping no graph."""
    total = len(steps.schedule)
    with torch.no_grad():
        for t, step in enumerate(steps):
            learner = update(learner, step)
            progress(Progress("training", t + 1, total))
    return learner
