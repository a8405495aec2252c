"""Learning rates of their own for the layers of a network, for any update rule."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from torch import Tensor

from ...errors import ConfigError
from ..distilled import Step, per_network
from ..learner import Learner
from ..network import Weights
from ..seam import Record
from .gradient_descent import GradientDescent
from .rule import UpdateRule


@dataclass(frozen=True)
class LayerRates(UpdateRule, name="layer-rates"):
    """θ_{t+1} = θ_t + s_l (f(θ_t) − θ_t): another rule's update f, times the factor of the layer.

    Attributes:
        layers: s_l of every layer, by the name of its module.
        rule: The other rule.
    """

    layers: Mapping[str, float | Tensor]
    rule: UpdateRule = field(default_factory=GradientDescent)

    wraps = True

    def __post_init__(self) -> None:
        for name, factor in self.layers.items():
            # They are tensors while they are learned.
            if not isinstance(factor, Tensor) and not 0 < factor < math.inf:
                raise ConfigError(
                    f"The factor of layer {name} is {factor}.", "Set it to a positive number."
                )

    def record(self) -> Record:
        return {"name": self.name, "layers": dict(self.layers), "rule": self.rule.record()}

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        layers: Any = values["layers"]
        numbers = isinstance(layers, dict) and all(map(_is_number, layers.values()))
        if not numbers:
            raise ConfigError(f"layers is {layers!r}.", "Give a factor for each layer, by name.")
        return cls(layers, UpdateRule.from_record(values["rule"]))

    def as_settings(self) -> dict[str, Any]:
        raise ConfigError(
            "Learning rates by layer are learned along with the distilled data.",
            "Set learn_layer_rates, and pass the other rule.",
        )

    def start(self, weights: Weights) -> Learner:
        if missing := [name for name in layers_of(weights) if name not in self.layers]:
            raise ConfigError(
                f"The network has a layer {missing[0]!r}, for which there is no learning rate.",
                "Learning rates by layer are for the network that they were learned for.",
            )
        return self.rule.start(weights)

    def update(self, learner: Learner, gradient: Weights, step: Step) -> Learner:
        after = self.rule.update(learner, gradient, step)
        weights = {
            name: w + self._factor(name, w) * (after.weights[name] - w)
            for name, w in learner.weights.items()
        }
        return Learner(weights, after.memory)

    def _factor(self, name: str, w: Tensor) -> Tensor | float:
        return per_network(self.layers[layer_of(name)], w)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def layer_of(name: str) -> str:
    """The layer that a weight belongs to: ``conv1`` of ``conv1.bias``."""
    return name.rpartition(".")[0]


def layers_of(weights: Weights) -> list[str]:
    """The layers of a network, in order."""
    return list(dict.fromkeys(map(layer_of, weights)))
