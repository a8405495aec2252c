"""The settings of a distillation."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..errors import ConfigError

AVERAGED_LATE = 9
"""The running mean of the first outer steps is of the last tenth of them."""
COSINE_END = 0.01
"""What is left of the outer learning rate at the end of a cosine."""


@dataclass(frozen=True)
class DistillerConfig:
    """The settings of a distillation; the defaults are the paper's protocol."""

    steps: int = 1
    """Batches of distilled data, applied in order."""
    epochs: int = 3
    """Passes over all steps; every (epoch, step) has its own learning rate."""
    images_per_class: int = 1
    """Distilled images of each class in one step (of regression: images in one step)."""
    iterations: int = 2000
    """Outer steps, each on one minibatch of real data."""
    networks: int | None = None
    """Networks sampled per outer step: 4 for random initializations, 1 for fixed ones."""
    batch_size: int = 1024
    """Real examples in one minibatch."""
    learning_rate: float = 0.02
    """Initial value of the distilled learning rates."""
    learn_rates: bool = True
    """Whether the learning rates are learned."""
    learn_labels: bool | None = None
    """Whether the labels are learned; by default only those of regression are."""
    momentum: float = 0.0
    """Momentum of the updates on distilled data; 0 is plain gradient descent."""
    outer_lr: float = 0.01
    """Learning rate of Adam on the distilled data."""
    betas: tuple[float, float] = (0.5, 0.999)
    """Adam's decay rates of the moments."""
    rates_lr: float | None = None
    """Learning rate of Adam on the learning rates themselves; outer_lr by default."""
    outer_schedule: Literal["periods", "cosine"] = "periods"
    """How these rates fall: by a factor after every period, or along a cosine over one."""
    decay: float = 0.5
    """Factor of the periods."""
    decay_every: int | None = None
    """Outer steps in a period; 40 passes over the training data by default, of a cosine all."""
    clip_norm: float | None = None
    """Longest gradient that a single network may give; longer ones are scaled down."""
    averaging: float = 0.0
    """Share of earlier outer steps in the running mean that becomes the distilled data; 0: none."""
    micro_batch: int | None = None
    """Images, real or distilled, to compute at a time; all by default. Fewer need less memory."""
    seed: int = 0
    """Number of all random streams of the run."""

    def __post_init__(self) -> None:
        whole = ("steps", "epochs", "images_per_class", "iterations", "networks", "batch_size")
        for name in (*whole, "decay_every", "micro_batch"):
            self._require(name, lambda value: value >= 1, "at least 1")
        for name in ("learning_rate", "outer_lr", "rates_lr", "decay", "clip_norm"):
            self._require(name, lambda value: 0 < value < math.inf, "a positive number")
        for name in ("momentum", "averaging"):
            self._require(name, lambda value: 0 <= value < 1, "at least 0 and below 1")
        self._require(
            "betas",
            lambda value: len(value) == 2 and all(0 <= beta < 1 for beta in value),
            "two numbers, at least 0 and below 1",
        )

    def _require(self, name: str, holds: Callable[[Any], bool], what: str) -> None:
        value = getattr(self, name)
        if value is not None and not holds(value):
            raise ConfigError(f"{name} is {value}.", f"Set {name} to {what}.")

    def for_examples(self, examples: int) -> "DistillerConfig":
        """Fills in what depends on the number of real training examples."""
        every = math.ceil(40 * examples / min(self.batch_size, examples))
        if self.outer_schedule == "cosine":
            every = self.iterations
        return replace(self, decay_every=self.decay_every or every)

    def outer_lr_at(self, outer_step: int) -> float:
        """The outer learning rate of an outer step."""
        periods = outer_step / self.decay_every if self.decay_every else 0
        if self.outer_schedule == "cosine":
            falling = (1 + math.cos(math.pi * min(periods, 1))) / 2
            return self.outer_lr * (COSINE_END + (1 - COSINE_END) * falling)
        return self.outer_lr * self.decay ** math.floor(periods)

    def averaging_at(self, updates: int) -> float:
        """The share of earlier outer steps in the mean: less as long as they are few."""
        return min(self.averaging, updates / (updates + AVERAGED_LATE))


def default_networks(*, fixed: bool) -> int:
    """Networks sampled per outer step, unless a configuration says how many."""
    return 1 if fixed else 4
