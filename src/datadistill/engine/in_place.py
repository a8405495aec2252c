"""Ordinary training, which is not differentiated: Adam of torch.optim on stacked weights."""

from dataclasses import dataclass

import torch
from torch.optim.adam import adam

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
        first, second = ({n: torch.zeros_like(w) for n, w in weights.items()} for _ in range(2))
        count = {name: torch.zeros(()) for name in weights}
        memory = {"first": first, "second": second, "count": count}
        return Learner({name: w.clone() for name, w in weights.items()}, memory)

    def update(self, learner: Learner, gradient: Weights, step: Step) -> Learner:
        """The same learner, after one update."""
        names = [*learner.weights]
        trees = learner.weights, gradient, learner.memory["first"], learner.memory["second"]
        # The function: the class imports torch's compiler first, which takes a second.
        adam(
            *([tree[name] for name in names] for tree in trees),
            max_exp_avg_sqs=[],
            state_steps=[learner.memory["count"][name] for name in names],
            foreach=False,
            amsgrad=False,
            beta1=self.betas[0],
            beta2=self.betas[1],
            lr=float(step.learning_rate.flatten()[0]),
            weight_decay=0.0,
            eps=1e-8,
            maximize=False,
        )
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
