"""Weight decay, for any update rule."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from ...errors import ConfigError
from ...given import typed
from ..distilled import Step
from ..engine import Gradient, Products
from ..learner import Learner
from ..network import Weights
from ..seam import Record
from .gradient_descent import GradientDescent
from .rule import UpdateRule


@typed
@dataclass(frozen=True)
class WeightDecay(UpdateRule, name="weight-decay"):
    """Another rule along ∇ℓ(x̃_t, θ_t) + λ θ_t: that of the loss with λ/2 ‖θ‖² added.

    Attributes:
        decay: λ.
        rule: The other rule.
    """

    decay: float
    rule: UpdateRule = field(default_factory=GradientDescent)

    wraps = True

    def __post_init__(self) -> None:
        if not self.decay >= 0:
            raise ConfigError(f"weight_decay is {self.decay}.", "Set it to at least 0.")

    def record(self) -> Record:
        return {**super().record(), "rule": self.rule.record()}

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        return super().from_values({**values, "rule": UpdateRule.from_record(values["rule"])})

    def as_settings(self) -> dict[str, Any]:
        if not self.is_built_in():
            return super().as_settings()
        return {**self.rule.as_settings(), "weight_decay": self.decay}

    @property
    def learnable(self) -> tuple[str, ...]:
        return self.rule.learnable

    def share(self, name: str) -> float:
        return self.rule.share(name)

    def with_shares(self, values: Mapping[str, Any]) -> "WeightDecay":
        return replace(self, rule=self.rule.with_shares(values))

    def start(self, weights: Weights) -> Learner:
        return self.rule.start(weights)

    def update(self, learner: Learner, gradient: Weights, step: Step) -> Learner:
        return self.rule.update(learner, self._decayed(gradient, learner.weights), step)

    def pull_back(
        self, learner: Learner, g: Gradient, step: Step, v: Learner
    ) -> tuple[Learner, Step]:
        """That of the other rule, through g + λ θ_t."""
        return self.rule.pull_back(learner, _Decayed(self, g, learner.weights), step, v)

    def _decayed(self, g: Weights, weights: Weights) -> Weights:
        return {name: one + self.decay * weights[name] for name, one in g.items()}


class _Decayed:
    """The gradient g + λ θ."""

    def __init__(self, rule: WeightDecay, g: Gradient, weights: Weights) -> None:
        self._rule, self._g, self._weights = rule, g, weights

    @property
    def values(self) -> Weights:
        return self._rule._decayed(self._g.values, self._weights)  # pyright: ignore[reportPrivateUsage]

    def products(self, u: Weights) -> Products:
        found = self._g.products(u)
        back = {n: w + self._rule.decay * u[n] for n, w in found.weights.items()}
        values = self._rule._decayed(found.values, self._weights)  # pyright: ignore[reportPrivateUsage]
        return Products(values, back, found.inputs, found.labels)
