"""Gradient descent with heavy-ball momentum."""

from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import Tensor

from ...errors import ConfigError
from ...given import typed
from ..distilled import Step, per_network
from ..engine import Gradient
from ..learner import Learner
from ..network import Weights
from .rule import UpdateRule, moved, rate_gradient

VELOCITY = "velocity"


@typed
@dataclass(frozen=True)
class Momentum(UpdateRule, name="momentum"):
    """v ← μ v + ∇ℓ(x̃_t, θ_t), θ_{t+1} = θ_t − η̃_t v.

    Attributes:
        momentum: μ, above 0 and below 1.
    """

    momentum: float | Tensor = 0.9  # a tensor while it is learned

    settings = MappingProxyType({"momentum": "momentum"})

    def __post_init__(self) -> None:
        if not isinstance(self.momentum, Tensor) and not 0 < self.momentum < 1:
            raise ConfigError(
                f"momentum is {self.momentum}.", "Set momentum above 0 and below 1, e.g. to 0.9."
            )

    @property
    def learnable(self) -> tuple[str, ...]:
        return ("momentum",)

    def start(self, weights: Weights) -> Learner:
        zeros = {name: torch.zeros_like(w) for name, w in weights.items()}
        return Learner(weights, {VELOCITY: zeros})

    def update(self, learner: Learner, gradient: Weights, step: Step) -> Learner:
        velocity = self._velocity(learner, gradient)
        return Learner(moved(learner.weights, velocity, step), {VELOCITY: velocity})

    def pull_back(
        self, learner: Learner, g: Gradient, step: Step, v: Learner
    ) -> tuple[Learner, Step]:
        """As for gradient descent, with u = −η̃_t ∂L/∂θ_{t+1} + ∂L/∂v_{t+1}."""
        of_velocity = v.memory[VELOCITY]
        u = {n: -step.rate_for(one) * one + of_velocity[n] for n, one in v.weights.items()}
        found = g.products(u)
        weights = {name: one + found.weights[name] for name, one in v.weights.items()}
        rate = rate_gradient(v.weights, self._velocity(learner, found.values), step)
        back = {name: self._share_of(one) * one for name, one in u.items()}
        return Learner(weights, {VELOCITY: back}), Step(found.inputs, found.labels, rate)

    def _velocity(self, learner: Learner, gradient: Weights) -> Weights:
        before = learner.memory[VELOCITY]
        return {name: self._share_of(g) * before[name] + g for name, g in gradient.items()}

    def _share_of(self, w: Tensor) -> Tensor | float:
        """μ, or that of each network, as a factor of a weight's velocity."""
        return per_network(self.momentum, w)
