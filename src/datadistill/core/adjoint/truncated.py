"""The truncated adjoint: only a window of the updates is differentiated."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import torch
from torch import Tensor

from ...errors import ConfigError
from ...given import typed
from ..distilled import Steps
from ..engine import Engine
from ..learner import Learner
from ..names import Placement
from ..update.loop import updated
from ..update.rule import UpdateRule
from .adjoint import Adjoint, OuterLoss
from .back_gradient import reverse_sweep

TEMPERATURE = 0.5
"""τ of the probabilities exp(norm / τ), with norms in units of their mean."""


@typed
@dataclass(frozen=True)
class Truncated(Adjoint, name="truncated"):
    """Back-propagates through a window of the updates only; the rest get no gradient.

    Attributes:
        window: How many updates are differentiated.
        random: Whether the unroll stops at a random update, so that the window falls
            anywhere in the schedule, or the window is always the last updates.
        placement: Where a random window falls: anywhere (uniform, the default), or by the gradient
            norms of its updates (gradient). Then large ones are preferred in the first third of the
            run, none in the second, and small ones in the last.
        end: The update after which the unroll stops, where it has been chosen.
    """

    window: int
    random: bool = True
    placement: Placement | None = None
    end: int | None = field(default=None, repr=False, compare=False)

    settings = MappingProxyType(
        {"window": "window", "random": "random_window", "placement": "window_placement"}
    )

    def __post_init__(self) -> None:
        if self.window < 1:
            raise ConfigError(f"window is {self.window}.", "Set window to at least 1.")

    def placed(
        self, share: float, norms: Callable[[], Tensor], generator: torch.Generator
    ) -> "Truncated":
        """P ∝ exp(± norm / τ) of the mean gradient norm in each window (AT-BPTT)."""
        third = min(2, int(3 * share))
        if not self.random or self.placement != "gradient" or third == 1:
            return self
        each = norms().double().cpu()
        window = min(self.window, len(each))
        means = each.unfold(0, window, 1).mean(1)
        sign = 1 if third == 0 else -1
        chances = (sign * means / (TEMPERATURE * means.mean())).softmax(0)
        if not torch.isfinite(chances).all():  # the network has diverged
            return self
        return replace(self, end=window + int(torch.multinomial(chances, 1, generator=generator)))

    def taped(self, updates: int) -> int:
        return min(self.window, updates)

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
        window = min(self.window, len(schedule))
        end = self.end or len(schedule)
        if self.random and self.end is None:
            end = int(torch.randint(window, end + 1, (), generator=generator))
        before, inside = schedule[: end - window], schedule[end - window : end]
        with torch.no_grad():
            learner = updated(rule, engine, learner, steps.at(before))
        return reverse_sweep(rule, engine, learner, steps, outer_loss, inside)
