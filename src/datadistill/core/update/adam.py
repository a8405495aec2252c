"""Adam as an update rule of the learners (Kingma and Ba 2014, Algorithm 1)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ...errors import ConfigError
from ..distilled import Step
from ..learner import Learner
from ..network import Weights
from .rule import UpdateRule, moved


@dataclass(frozen=True)
class Adam(UpdateRule, name="adam"):
    """θ_{t+1} = θ_t − η̃_t m̂ / (√v̂ + ε), of the running moments m and v of the gradient.

    Attributes:
        betas: Decay rates of the two moments.
        eps: ε, which keeps the quotient finite.
    """

    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8

    def __post_init__(self) -> None:
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise ConfigError(
                f"betas is {self.betas}.", "Set betas to two numbers, at least 0 and below 1."
            )
        if not self.eps >= 0:
            raise ConfigError(f"eps is {self.eps}.", "Set eps to a small positive number.")

    def start(self, weights: Weights) -> Learner:
        zeros = {name: torch.zeros_like(w) for name, w in weights.items()}
        device = next(iter(weights.values())).device
        count = {"": torch.zeros((), dtype=torch.int64, device=device)}
        return Learner(weights, {"first": zeros, "second": dict(zeros), "count": count})

    def update(self, learner: Learner, gradient: Weights, step: Step) -> Learner:
        (b1, b2), memory = self.betas, learner.memory
        count = memory["count"][""] + 1
        left1, left2 = 1 - b1 ** int(count), 1 - b2 ** int(count)
        first = {n: b1 * memory["first"][n] + (1 - b1) * g for n, g in gradient.items()}
        second = {n: b2 * memory["second"][n] + (1 - b2) * g * g for n, g in gradient.items()}
        direction = {
            name: (m / left1) / (_root(second[name] / left2) + self.eps)
            for name, m in first.items()
        }
        weights = moved(learner.weights, direction, step)
        return Learner(weights, {"first": first, "second": second, "count": {"": count}})


def _root(square: Tensor) -> Tensor:
    """√x, with the derivative 0 at 0, where a weight has never had a gradient."""
    there = square > 0
    return torch.where(there, torch.where(there, square, 1).sqrt(), 0)
