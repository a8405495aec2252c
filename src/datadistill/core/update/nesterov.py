"""Gradient descent with Nesterov's momentum, in the form that PyTorch's SGD has."""

from dataclasses import dataclass

from ...given import typed
from ..distilled import Step
from ..learner import Learner
from ..network import Weights
from .momentum import VELOCITY, Momentum
from .rule import moved


@typed
@dataclass(frozen=True)
class Nesterov(Momentum, name="nesterov"):
    """v ← μ v + ∇ℓ(x̃_t, θ_t), θ_{t+1} = θ_t − η̃_t (∇ℓ(x̃_t, θ_t) + μ v)."""

    def update(self, learner: Learner, gradient: Weights, step: Step) -> Learner:
        velocity = self._velocity(learner, gradient)
        direction = {name: g + self._share_of(g) * velocity[name] for name, g in gradient.items()}
        return Learner(moved(learner.weights, direction, step), {VELOCITY: velocity})
