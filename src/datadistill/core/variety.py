"""Variety: what is drawn anew for every outer step, so that distilled data serve other training.

An outer step has one architecture, one way to train and one factor of the learning rates.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from .engine import Engine
from .update import Adam, Momentum, UpdateRule


class Training(NamedTuple):
    """Ordinary training: an update rule, with one learning rate for all updates."""

    rule: UpdateRule
    rate: float


ORDINARY = {"sgd": Training(Momentum(0.9), 0.01), "adam": Training(Adam(), 0.001)}
"""Ordinary training by name, with the learning rates that are usual."""


class Pace(NamedTuple):
    """The learning rates that an outer step uses.

    Attributes:
        rate: One for all updates, in place of those that are learned.
        factor: Factor of them.
    """

    rate: float | None = None
    factor: float = 1.0

    def rates(self, learned: Tensor) -> Tensor:
        """The learning rates in use, from those that are learned."""
        return self.factor * (learned if self.rate is None else torch.full_like(learned, self.rate))

    @property
    def slope(self) -> float:
        """The derivative of those in use."""
        return self.factor if self.rate is None else 0.0


class Drawn(NamedTuple):
    """What an outer step has drawn.

    Attributes:
        other: Which of the other architectures; None: that of the distiller.
        rule: An update rule in place of the distiller's.
        pace: Its learning rates.
    """

    other: Engine | None
    rule: UpdateRule | None
    pace: Pace


@dataclass(frozen=True)
class Variety:
    """What varies between outer steps.

    Attributes:
        others: Other architectures, each as likely as that of the distiller.
        ordinary: Ordinary training, each as likely as the distiller's own schedule.
        jitter: Learning rates are multiplied by a factor between 1 / (1 + jitter) and 1 + jitter.
    """

    others: tuple[Engine, ...] = ()
    ordinary: tuple[Training, ...] = ()
    jitter: float = 0.0

    def __bool__(self) -> bool:
        return bool(self.others or self.ordinary or self.jitter)

    def draw(self, generator: torch.Generator) -> Drawn:
        """Draws all of them."""
        which = int(torch.randint(1 + len(self.others), (), generator=generator))
        how = int(torch.randint(1 + len(self.ordinary), (), generator=generator))
        exponent = 2 * float(torch.rand((), generator=generator)) - 1
        rule, rate = self.ordinary[how - 1] if how else (None, None)
        factor = (1 + self.jitter) ** exponent
        return Drawn(self.others[which - 1] if which else None, rule, Pace(rate, factor))
