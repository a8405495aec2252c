"""The settings of a distillation, in groups: what is learned, the outer optimiser.

Each group is a dataclass that checks its own values, and :class:`DistillerConfig` inherits them
all, so every setting is read by its own name: ``config.steps``.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from ..errors import ConfigError
from .values import one_line

AVERAGED_LATE = 9
"""The running mean of the first outer steps is of the last tenth of them."""
COSINE_END = 0.01
"""What is left of the outer learning rate at the end of a cosine."""
MOST = 2**31
"""Counts are below it; more are surely a slip, and overflow somewhere."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A group of settings. Groups are combined by inheritance."""

    def __post_init__(self) -> None:
        """Each group adds the checks of its own settings."""

    def _require(self, holds: Callable[[Any], bool], what: str, *names: str) -> None:
        """Refuses a value for which ``holds`` is false; None stands for a default."""
        for name in names:
            value = getattr(self, name)
            if value is not None and not holds(value):
                raise ConfigError(f"{name} is {value}.", f"Set {name} to {what}.")

    def _require_count(self, *names: str) -> None:
        self._require(lambda value: value >= 1, "at least 1", *names)
        self._require(lambda value: value < MOST, f"less than {MOST:,}", *names)

    def _require_positive(self, *names: str) -> None:
        self._require(lambda value: 0 < value < math.inf, "a positive number", *names)

    def _require_share(self, *names: str) -> None:
        self._require(lambda value: 0 <= value < 1, "at least 0 and below 1", *names)


@dataclass(frozen=True, kw_only=True)
class Learned(Settings):
    """What is learned: the distilled data and their learning rates."""

    steps: int = 1
    """Batches of distilled data, applied in order."""
    epochs: int = 3
    """Passes over all steps; every (epoch, step) has its own learning rate."""
    images_per_class: int = 1
    """Distilled images of each class in a step; for regression, images in a step."""
    images_per_step: int | None = None
    """Distilled images in a step, in place of images_per_class. Classes take turns over all steps;
    with fewer images than classes in all, each starts as a mixture, and labels must be learned."""
    learning_rate: float = 0.02
    """Initial value of the distilled learning rates."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_count("steps", "epochs", "images_per_class", "images_per_step")
        self._require_positive("learning_rate")


@dataclass(frozen=True, kw_only=True)
class Unroll(Settings):
    """The unroll: how networks are trained on the distilled data."""

    inner_batch: int | None = None
    """Images of each class that an update takes, drawn at random from all steps; with
    images_per_step or for regression, images in all. By default an update takes all of its step."""

    shuffle: bool = False
    """Draw as many images for an update, or as many as a step has, whatever their class: as a
    shuffled DataLoader does."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_count("inner_batch")


@dataclass(frozen=True, kw_only=True)
class Outer(Settings):
    """The outer optimiser: how the distilled data follow their gradient."""

    iterations: int = 2000
    """Outer steps, each on one minibatch of real data."""
    batch_size: int = 1024
    """Real examples in a minibatch."""
    networks: int | None = None
    """Networks sampled per outer step. By default 4 for random initializations, 1 for fixed."""
    outer_lr: float = 0.01
    """Learning rate of Adam on the distilled data."""
    betas: tuple[float, float] = (0.5, 0.999)
    """Decay rates of Adam's two moments."""
    rates_lr: float | None = None
    """Learning rate of Adam on the distilled learning rates. By default outer_lr."""
    labels_lr: float | None = None
    """Learning rate of Adam on labels that are learned. By default outer_lr."""
    outer_schedule: Literal["periods", "cosine"] = "periods"
    """Schedule of both learning rates: multiplied by decay after every period, or a cosine."""
    decay: float = 0.5
    """Factor after every period."""
    decay_every: int | None = None
    """Outer steps in a period. By default 40 passes over the training data; for a cosine, all."""
    clip_norm: float | None = None
    """Largest norm of one network's gradient; larger ones are scaled down. None: no limit."""
    clip_factor: float | None = None
    """Largest norm of the gradient, as a multiple of its running mean (decay 0.9); larger ones are
    scaled down. None: no limit."""
    averaging: float = 0.0
    """Decay of the running mean over outer steps that becomes the distilled data; 0: no mean."""
    seed: int = 0
    """Seed of all random streams of the run."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_count("iterations", "batch_size", "networks", "decay_every")
        self._require_positive("outer_lr", "rates_lr", "labels_lr", "decay")
        self._require_positive("clip_norm", "clip_factor")
        self._require_share("averaging")
        self._require(
            lambda value: len(value) == 2 and all(0 <= beta < 1 for beta in value),
            "two numbers, at least 0 and below 1",
            "betas",
        )

    def planned(self, outer_step: int) -> int:
        """The outer step of the schedule that an outer step of the run stands for."""
        return outer_step

    def share_at(self, outer_step: int) -> float:
        """How much of the schedule is done before an outer step, from 0 to 1."""
        cosine = self.outer_schedule == "cosine" and self.decay_every
        return min(1.0, self.planned(outer_step) / (cosine or self.iterations))

    def outer_lr_at(self, outer_step: int) -> float:
        """The outer learning rate of an outer step."""
        outer_step = self.planned(outer_step)
        periods = outer_step / self.decay_every if self.decay_every else 0
        if self.outer_schedule == "cosine":
            falling = (1 + math.cos(math.pi * min(periods, 1))) / 2
            return self.outer_lr * (COSINE_END + (1 - COSINE_END) * falling)
        return self.outer_lr * self.decay ** math.floor(periods)

    def averaging_at(self, updates: int) -> float:
        """The share of earlier outer steps in the mean: less as long as they are few."""
        return min(self.averaging, updates / (updates + AVERAGED_LATE))


@dataclass(frozen=True, kw_only=True)
class DistillerConfig(Learned, Unroll, Outer):
    """The settings of a distillation; the defaults are the paper's protocol."""

    __repr__ = one_line

    def for_examples(self, examples: int) -> Self:
        """Fills in what depends on the number of real training examples."""
        every = math.ceil(40 * examples / min(self.batch_size, examples))
        if self.outer_schedule == "cosine":
            every = self.iterations
        return replace(self, decay_every=self.decay_every or every)


def default_networks(*, fixed: bool) -> int:
    """Networks sampled per outer step, unless a configuration says how many."""
    return 1 if fixed else 4
