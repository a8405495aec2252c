"""The back-gradient: exact, in the memory of one update's graph and of the weights kept.

Forward, only weights are kept; backward, the graph of one update at a time is built again and
v = ∂L/∂θ_{t+1} pulled back through it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ...errors import ConfigError
from ..distilled import Position, Steps, zeros_like
from ..engine import Engine
from ..gradients import leaf, products
from ..learner import Learner
from ..update.rule import UpdateRule
from .adjoint import Adjoint, OuterLoss


def reverse_sweep(
    rule: UpdateRule,
    engine: Engine,
    learner: Learner,
    steps: Steps,
    outer_loss: OuterLoss,
    schedule: Sequence[Position],
    segments: int | None = None,
) -> tuple[Tensor, Steps]:
    """Makes the updates of ``schedule``, and pulls the gradient back through each of them."""
    chosen = steps.at(schedule)
    tape = engine.tape(rule, learner, chosen, segments)
    losses, v = outer_gradient(outer_loss, tape.forward())  # θ_T, and v = ∂L/∂θ_T
    total = zeros_like(steps)
    backwards = zip(reversed(schedule), reversed(chosen), tape.backward(), strict=True)
    for position, step, (before, g) in backwards:
        # v = ∂L/∂θ_{t+1} → ∂L/∂θ_t, and the gradient of x̃_t, its labels and η̃_t
        v, gradient = rule.pull_back(before, g, step, v)
        total.add(position, gradient)
    return losses, total


def outer_gradient(outer_loss: OuterLoss, learner: Learner) -> tuple[Tensor, Learner]:
    """The losses (J,), and the gradient of their mean with respect to the learner."""
    after = learner.rebuild([leaf(own) for own in learner.leaves()])
    with torch.enable_grad():
        losses = outer_loss(after.weights)
        v = products([losses.mean()], after.leaves())
    return losses.detach(), learner.rebuild(v)


@dataclass(frozen=True)
class BackGradient(Adjoint, name="back-gradient"):
    """Exact, in the memory of one update's graph and of the weights that are kept.

    A long unroll can be divided into segments: only the weights at the beginning of each are
    kept, and its updates are made again when v comes to it. The gradient is bit-identical.

    Attributes:
        segments: Into how many; by default as few as keep the weights within 384 MiB, and at
            most √T.
    """

    segments: int | None = field(default=None, repr=False, compare=False)  # changes no result

    is_exact = True

    def __post_init__(self) -> None:
        if self.segments is not None and self.segments < 1:
            raise ConfigError(
                f"segments is {self.segments}.", "Set it to at least 1, or leave it out."
            )

    def __call__(
        self,
        rule: UpdateRule,
        engine: Engine,
        learner: Learner,
        steps: Steps,
        outer_loss: OuterLoss,
        generator: torch.Generator,
    ) -> tuple[Tensor, Steps]:
        return reverse_sweep(
            rule, engine, learner, steps, outer_loss, steps.schedule, self.segments
        )
