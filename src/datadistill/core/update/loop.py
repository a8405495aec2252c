"""Training: the one loop over updates."""

import collections
from collections.abc import Iterable, Iterator
from typing import Protocol

import torch

from ..distilled import Step
from ..engine import UpdateFunction
from ..learner import Learner
from ..network import Weights


class Rule(UpdateFunction, Protocol):
    """What training needs of an update rule."""

    def start(self, weights: Weights) -> Learner:
        """A learner at its initial weights."""
        ...


class GradientOf(Protocol):
    """What training needs of an engine."""

    def gradient(self, weights: Weights, step: Step, /) -> Weights:
        """∇ℓ(x̃, θ)."""
        ...


def updated(
    rule: UpdateFunction, engine: GradientOf, learner: Learner, steps: Iterable[Step]
) -> Learner:
    """The learner after an update on each step; with its graph if gradients are enabled."""
    for step in steps:
        learner = rule.update(learner, engine.gradient(learner.weights, step), step)
    return learner


def learning(
    rule: Rule, engine: GradientOf, theta0: Weights, steps: Iterable[Step]
) -> Iterator[Learner]:
    """The learner before the first step and after each, keeping no graph."""
    learner = rule.start(theta0)
    yield learner
    for step in steps:
        with torch.no_grad():
            learner = updated(rule, engine, learner, [step])
        yield learner


def training(
    rule: Rule, engine: GradientOf, theta0: Weights, steps: Iterable[Step]
) -> Iterator[Weights]:
    """θ₀, θ₁, …, θ_T: the weights before the first step and after each."""
    return (learner.weights for learner in learning(rule, engine, theta0, steps))


def trained(rule: Rule, engine: GradientOf, theta0: Weights, steps: Iterable[Step]) -> Learner:
    """The learner after the last step: θ_T, with what the rule carries along."""
    last = collections.deque(learning(rule, engine, theta0, steps), maxlen=1)
    return last.pop()


def train(rule: Rule, engine: GradientOf, theta0: Weights, steps: Iterable[Step]) -> Weights:
    """θ_T."""
    return trained(rule, engine, theta0, steps).weights
