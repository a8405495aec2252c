"""The truncated adjoint: only a window of the updates is differentiated."""

from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import Tensor

from ...errors import ConfigError
from ..distilled import Steps
from ..engine import Engine
from ..learner import Learner
from ..update.rule import UpdateRule
from .adjoint import Adjoint, OuterLoss
from .back_gradient import reverse_sweep


@dataclass(frozen=True)
class Truncated(Adjoint, name="truncated"):
    """Back-propagates through a window of the updates only; the rest get no gradient.

    Attributes:
        window: How many updates are differentiated.
        random: Whether the unroll stops at a random update, so that the window falls
            anywhere in the schedule, or the window is always the last updates.
    """

    window: int
    random: bool = True

    settings = MappingProxyType({"window": "window", "random": "random_window"})

    def __post_init__(self) -> None:
        if self.window < 1:
            raise ConfigError(f"window is {self.window}.", "Set window to at least 1.")

    def __call__(
        self,
        rule: UpdateRule,
        engine: Engine,
        learner: Learner,
        steps: Steps,
        outer_loss: OuterLoss,
        generator: torch.Generator,
    ) -> tuple[Tensor, Steps]:
        schedule = steps.schedule
        end, window = len(schedule), min(self.window, len(schedule))
        if self.random:
            end = int(torch.randint(window, end + 1, (), generator=generator))
        before, inside = schedule[: end - window], schedule[end - window : end]
        with torch.no_grad():
            for step in steps.at(before):
                learner = rule.update(learner, engine.gradient(learner.weights, step), step)
        return reverse_sweep(rule, engine, learner, steps, outer_loss, inside)
