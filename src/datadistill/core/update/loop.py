"""Training: the one loop over updates."""

import collections
from collections.abc import Iterable, Iterator
from typing import Protocol

import torch

from ..distilled import Step
from ..learner import Learner
from ..network import Weights


class Rule(Protocol):
    """What training needs of an update rule."""

    def start(self, weights: Weights) -> Learner:
        """A learner at its initial weights."""
        ...

    def update(self, learner: Learner, gradient: Weights, step: Step) -> Learner:
        """The learner after an update."""
        ...


class GradientOf(Protocol):
    """What training needs of an engine."""

    def gradient(self, weights: Weights, step: Step) -> Weights:
        """∇ℓ(x̃, θ)."""
        ...


def training(
    rule: Rule, engine: GradientOf, theta0: Weights, steps: Iterable[Step]
) -> Iterator[Weights]:
    """θ₀, θ₁, …, θ_T: the weights before the first step and after each, keeping no graph."""
    learner = rule.start(theta0)
    yield learner.weights
    for step in steps:
        with torch.no_grad():
            learner = rule.update(learner, engine.gradient(learner.weights, step), step)
        yield learner.weights


def train(rule: Rule, engine: GradientOf, theta0: Weights, steps: Iterable[Step]) -> Weights:
    """θ_T."""
    last = collections.deque(training(rule, engine, theta0, steps), maxlen=1)
    return last.pop()
