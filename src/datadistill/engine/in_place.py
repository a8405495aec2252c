"""Ordinary training, which is not differentiated: Adam of torch.optim on stacked weights."""

from dataclasses import dataclass

import torch

from ..core.distilled import Step
from ..core.engine import Engine
from ..core.gradients import gradient
from ..core.learner import Learner
from ..core.network import Weights


@dataclass(frozen=True)
class InPlaceAdam:
    """Adam of J networks at once, in place: it works on each weight alone.

    The update rule :class:`datadistill.core.update.Adam` is the same as a pure function, which
    takes three times as long.

    Attributes:
        betas: Decay rates of the two moments.
    """

    betas: tuple[float, float] = (0.9, 0.999)

    def start(self, weights: Weights) -> Learner:
        """A learner at a copy of its initial weights."""
        return InPlaceLearner({name: w.clone() for name, w in weights.items()}, self.betas)

    def update(self, learner: Learner, gradient: Weights, step: Step) -> Learner:
        """The same learner, after one update."""
        assert isinstance(learner, InPlaceLearner)
        (group,) = learner.optimizer.param_groups
        group["lr"] = float(step.learning_rate.flatten()[0])
        for name, w in learner.weights.items():
            w.grad = gradient[name]
        learner.optimizer.step()
        return learner


class InPlaceLearner(Learner):
    """A learner whose weights change in place."""

    optimizer: torch.optim.Adam

    def __new__(cls, weights: Weights, betas: tuple[float, float]) -> "InPlaceLearner":
        """Its optimizer keeps the moments."""
        learner = super().__new__(cls, weights, {})
        learner.optimizer = torch.optim.Adam([*weights.values()], betas=betas)
        return learner


@dataclass(frozen=True)
class OnRealData:
    """Gradients of the outer loss: for training on real data.

    Attributes:
        engine: What computes the losses.
    """

    engine: Engine

    def gradient(self, weights: Weights, step: Step) -> Weights:
        """∇L(x, θ) of J networks on the same real examples."""
        return gradient(
            lambda theta: self.engine.outer_losses(theta, step.inputs, step.labels).sum(), weights
        )
