"""How the networks of a pool are trained: our quick setting and the paper's."""

import dataclasses
import math
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

from ..core.names import DeviceName, Scheme, check_scheme
from ..errors import ConfigError
from ..given import typed

Preset = Literal["quick", "paper"]


class _Paper(NamedTuple):
    epochs: int
    halved_every: int  # epochs
    lr: float


PAPER = {
    "mnist": _Paper(40, 20, 2e-4),
    "usps": _Paper(130, 40, 2e-4),
    "svhn": _Paper(65, 20, 2e-4),
    "cifar10": _Paper(50, 7, 1e-3),
}
"""The settings that the paper's authors published."""

QUICK_UPDATES = 1200
QUICK_EPOCHS = {"svhn": 5, "svhn-gray": 5, "cifar10": 12}
"""Epochs of the quick setting where so few updates would not do."""


@dataclass(frozen=True, kw_only=True)
class PoolChoices:
    """What is chosen of a pool: the flags of ``datadistill pretrain``."""

    networks: int = 200
    """Networks that distillation draws from."""
    held_out: int = 100
    """Other networks, that only evaluation uses."""
    model: str = "lenet"
    """Network: lenet, "convnet3(width=32)" and so on, or your own as package.module:Class."""
    model_args: tuple[str, ...] = ()
    """Arguments of the network's constructor, e.g. --model-args width=64 bias=false."""
    preset: Preset = "quick"
    """How to train: our quick setting, or the paper's, which takes many times as long."""
    epochs: int | None = None
    """Passes over the training data; as the preset says by default, like the next four."""
    lr: float | None = None
    """Adam's learning rate at the beginning."""
    batch_size: int | None = None
    """Examples of a minibatch."""
    scheme: Scheme | None = None
    """How initial weights are drawn."""
    validation: float | None = None
    """Share of the training data held out to measure accuracy on."""
    seed: int = 0
    """Which networks."""
    device: DeviceName = "auto"
    """Where to compute."""
    threads: int | None = None
    """Processor threads of each process; by default as many as torch would take for all."""

    def choices(self) -> dict[str, Any]:
        """Every choice by its name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(PoolChoices)}


@typed
@dataclass(frozen=True, kw_only=True)
class PoolSettings:
    """All that determines a network of a pool but its data, architecture, part and number.

    Attributes:
        epochs: Passes over the training data, each in a new order for each network.
        batch_size: Examples of a minibatch.
        lr: Adam's learning rate at the beginning.
        schedule: How it falls: along a cosine to 0, or halved after every period.
        halved_every: Epochs of a period.
        betas: Adam's decay rates of the moments.
        scheme: How initial weights are drawn.
        validation: Share of the training data held out to measure accuracy on.
        seed: Which networks.
    """

    epochs: int
    batch_size: int = 64
    lr: float = 3e-3
    schedule: Literal["cosine", "halved"] = "cosine"
    halved_every: int | None = None
    betas: tuple[float, float] = (0.9, 0.999)
    scheme: Scheme = "xavier-normal"
    validation: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}.", "Set it to at least 1.")
        if not 0 < self.lr < math.inf:
            raise ConfigError(f"lr is {self.lr}.", "Set it to a positive number.")
        if not 0 <= self.validation < 1:
            raise ConfigError(
                f"validation is {self.validation}.", "Set it to at least 0 and below 1."
            )
        check_scheme(self.scheme)

    @classmethod
    def preset(cls, name: Preset, data: str, examples: int) -> "PoolSettings":
        """The quick setting, or the paper's, for a data set of so many training examples."""
        if name not in get_args(Preset):
            raise ConfigError(f"There is no preset {name!r}.", "Choose quick or paper.")
        if name == "quick":
            epochs = max(2, round(QUICK_UPDATES * cls.batch_size / examples))
            return cls(epochs=QUICK_EPOCHS.get(data, epochs))
        if data not in PAPER:
            raise ConfigError(
                f"The paper has no setting to pre-train networks on {data}.",
                f"Use the preset quick; the paper's are for {', '.join(PAPER)}.",
            )
        paper = PAPER[data]
        return cls(
            epochs=paper.epochs,
            batch_size=1024,
            lr=paper.lr,
            schedule="halved",
            halved_every=paper.halved_every,
            betas=(0.5, 0.999),
        )

    def changed(self, **settings: Any) -> "PoolSettings":
        """The same with other values of those settings that are given."""
        known = [field.name for field in dataclasses.fields(self)]
        for name in settings:
            if name not in known:
                raise ConfigError(
                    f"There is no setting {name!r} of a pool.",
                    f"The settings are: {', '.join(known)}.",
                )
        return replace(self, **{n: value for n, value in settings.items() if value is not None})

    def updates(self, examples: int) -> int:
        """How many updates an epoch has: all minibatches are full."""
        return max(1, examples // self.batch_size)

    def rate(self, epoch: int, done: float) -> float:
        """The learning rate in an epoch, when a share of all updates is done."""
        if self.schedule == "cosine":
            return self.lr * (1 + math.cos(math.pi * done)) / 2
        return self.lr * 0.5 ** (epoch // (self.halved_every or self.epochs))

    def mapping(self) -> dict[str, Any]:
        """All settings in plain types."""
        return {**dataclasses.asdict(self), "betas": list(self.betas)}
