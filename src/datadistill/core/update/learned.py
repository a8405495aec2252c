"""Update rules with coefficients that are learned along with the distilled data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from ...errors import ConfigError
from ..distilled import Step
from ..learner import Learner
from ..network import Weights
from .layer_rates import LayerRates
from .rule import UpdateRule


@dataclass(frozen=True)
class LearnedRule(UpdateRule):
    """Another rule whose coefficients are those of the step: logits of shares, logs of factors.

    It is for distillation only; the artefact has the rule with the coefficients as numbers.

    Attributes:
        rule: The other rule, with the coefficients to start from.
        shares: Its fields that are learned, numbers between 0 and 1.
        layers: The layers whose factor on the learning rate is learned.
    """

    rule: UpdateRule
    shares: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.shares:
            if name not in self.rule.learnable:
                raise ConfigError(
                    f"{name} has no meaning for the update rule {self.rule.name}.",
                    f"Set update_rule to momentum or nesterov, or leave learn_{name} out.",
                )

    @property
    def coefficients(self) -> Tensor:
        """What is learned, as it starts: (K,)."""
        shares = torch.tensor([self.rule.share(name) for name in self.shares])
        return torch.cat([torch.logit(shares), torch.zeros(len(self.layers))])

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:  # noqa: ARG003 - none will do
        raise ConfigError(
            "A rule that is being learned has no record.", "Record the one that settled() gives."
        )

    def settled(self, coefficients: Tensor | None) -> UpdateRule:
        if coefficients is None:
            return self.rule
        shares, layers = ({n: float(c) for n, c in own.items()} for own in self._by(coefficients))
        return self._with(shares, layers)

    def start(self, weights: Weights) -> Learner:
        return self.rule.start(weights)

    def update(self, learner: Learner, gradient: Weights, step: Step) -> Learner:
        own = step.coefficients
        rule = self.rule if own is None else self._with(*self._by(own))
        return rule.update(learner, gradient, step)

    def _by(self, coefficients: Tensor) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Shares and factors by name, from what is learned of them: (K,) or (J, K)."""
        own, count = coefficients.unbind(-1), len(self.shares)
        shares = {name: x.sigmoid() for name, x in zip(self.shares, own[:count], strict=True)}
        layers = {name: x.exp() for name, x in zip(self.layers, own[count:], strict=True)}
        return shares, layers

    def _with(self, shares: Mapping[str, Any], layers: Mapping[str, Any]) -> UpdateRule:
        rule = self.rule.with_shares(shares) if shares else self.rule
        return LayerRates(layers, rule) if layers else rule
