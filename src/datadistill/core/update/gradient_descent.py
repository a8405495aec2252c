"""Gradient descent: the paper's update rule."""

from dataclasses import dataclass

from ..distilled import Step
from ..engine import Gradient
from ..learner import Learner
from ..network import Weights
from .rule import UpdateRule, moved, rate_gradient


@dataclass(frozen=True)
class GradientDescent(UpdateRule, name="gradient-descent"):
    """θ_{t+1} = θ_t − η̃_t ∇ℓ(x̃_t, θ_t)."""

    def update(self, learner: Learner, gradient: Weights, step: Step) -> Learner:
        return Learner(moved(learner.weights, gradient, step))

    def pull_back(
        self, learner: Learner, g: Gradient, step: Step, v: Learner
    ) -> tuple[Learner, Step]:
        """V + ∂⟨u, g⟩/∂θ_t with u = −η̃_t v; the step gets ∂⟨u, g⟩/∂x̃_t, its rate −⟨v, g⟩."""
        u = {name: -step.rate_for(one) * one for name, one in v.weights.items()}
        found = g.products(u)
        weights = {name: one + found.weights[name] for name, one in v.weights.items()}
        rate = rate_gradient(v.weights, found.values, step)
        return Learner(weights), Step(found.inputs, found.labels, rate)
