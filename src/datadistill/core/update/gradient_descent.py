"""Gradient descent: the paper's update rule."""

from dataclasses import dataclass

from torch import Tensor

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
        """V − η̃_t ∂⟨v, g⟩/∂θ_t; the step gets −η̃_t ∂⟨v, g⟩/∂x̃_t, its rate −⟨v, g⟩."""
        found = g.products(v.weights)
        weights = moved(v.weights, found.weights, step)
        rate = rate_gradient(v.weights, found.values, step)
        inputs, labels = _scaled(found.inputs, step), _scaled(found.labels, step)
        return Learner(weights), Step(inputs, labels, rate)


def _scaled(product: Tensor, step: Step) -> Tensor:
    """−η̃_t times a product; labels that are class indices have none."""
    return -step.rate_for(product) * product if product.is_floating_point() else product
