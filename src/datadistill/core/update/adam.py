"""Adam as an update rule of the learners (Kingma and Ba 2014, Algorithm 1)."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ...errors import ConfigError
from ..distilled import Step
from ..engine import Gradient
from ..learner import Learner
from ..network import Weights
from .rule import UpdateRule, moved, rate_gradient


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
        made = self._made(learner, gradient)
        direction = {name: m / (made.root(name) + self.eps) for name, m in made.first.items()}
        weights = moved(learner.weights, direction, made.scaled(step))
        memory = {"first": made.first, "second": made.second, "count": {"": made.updates}}
        return Learner(weights, memory)

    def pull_back(
        self, learner: Learner, g: Gradient, step: Step, v: Learner
    ) -> tuple[Learner, Step]:
        """As derived from :meth:`update`, in fewer passes over the weights.

        θ_{t+1} = θ_t − η d with η = η̃_t / (1 − β₁ᵗ), d = m / (s + ε) and s = √(v / (1 − β₂ᵗ)). So,
        with q = η v_θ / (s + ε), ∂L/∂m = v_m − q and ∂L/∂v = v_v + q d / (2 s (1 − β₂ᵗ)).
        """
        (b1, b2), values = self.betas, g.values
        made = self._made(learner, values)
        scaled, u, first, second, direction = made.scaled(step), {}, {}, {}, {}
        for name, one in v.weights.items():
            root = made.root(name)
            divisor = root + self.eps
            direction[name] = made.first[name] / divisor
            q = one.div(divisor).mul_(scaled.rate_for(one))
            of_first = v.memory["first"][name] - q
            slope = q.mul_(direction[name]).div_(root).masked_fill_(root == 0, 0)  # as in `root`
            of_second = v.memory["second"][name].add(slope, alpha=0.5 / made.left2)
            u[name] = ((1 - b1) * of_first).addcmul_(values[name], of_second, value=2 - 2 * b2)
            first[name], second[name] = of_first.mul_(b1), of_second.mul_(b2)
        found = g.products(u)
        weights = {name: one + found.weights[name] for name, one in v.weights.items()}
        rate = rate_gradient(v.weights, direction, step) / made.left1
        none = {"": torch.zeros_like(learner.memory["count"][""])}  # of a number of updates
        memory = {"first": first, "second": second, "count": none}
        return Learner(weights, memory), Step(found.inputs, found.labels, rate)

    def _made(self, learner: Learner, gradient: Weights) -> "_Moments":
        """The moments after an update along a gradient."""
        (b1, b2), memory = self.betas, learner.memory
        count = memory["count"][""] + 1
        first = {n: torch.lerp(memory["first"][n], g, 1 - b1) for n, g in gradient.items()}
        second = {
            n: torch.addcmul(b2 * memory["second"][n], g, g, value=1 - b2)
            for n, g in gradient.items()
        }
        left1, left2 = 1 - b1 ** int(count), 1 - b2 ** int(count)
        return _Moments(first, second, count, left1, left2)


class _Moments(NamedTuple):
    """The running moments m and v, the number of updates t, 1 − β₁ᵗ and 1 − β₂ᵗ."""

    first: Weights
    second: Weights
    updates: Tensor
    left1: float
    left2: float

    def scaled(self, step: Step) -> Step:
        """The step with the learning rate η̃ / (1 − β₁ᵗ)."""
        return step._replace(learning_rate=step.learning_rate / self.left1)

    def root(self, name: str) -> Tensor:
        """√(v/(1 − β₂ᵗ)), with the derivative 0 at 0, where a weight has never had a gradient."""
        square = self.second[name] / self.left2
        if not (torch.is_grad_enabled() and square.requires_grad):
            return square.sqrt()
        there = square > 0
        return torch.where(there, torch.where(there, square, 1).sqrt(), 0)
