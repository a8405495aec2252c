"""Ordinary training: the distilled images as a plain data set, in shuffled minibatches."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from ..artefact import DistilledData
from ..core.device import DeviceLike
from ..core.distilled import Step, Steps
from ..core.engine import Engine
from ..core.grad_mode import with_gradients
from ..core.network import Weights
from ..core.random import stream
from ..core.settings import MOST
from ..core.update import Momentum, WeightDecay, training
from ..core.update.loop import Rule
from ..core.variety import ORDINARY
from ..core.view import View
from ..engine import ALONE, Team, engine_for
from ..engine.in_place import InPlaceAdam
from ..engine.side_by_side import DEFAULT_BYTES
from ..errors import ConfigError
from ..given import typed
from ..progress import ProgressCallback
from ..showing import shown
from .held_out import Learn
from .learners import Learners
from .result import Evaluation

MOMENTUM = 0.9
BETAS = (0.9, 0.999)
RATES = {name: one.rate for name, one in ORDINARY.items()}
"""Learning rates that are usual for each optimizer."""

SGD = Momentum(MOMENTUM)

OptimizerName = Literal["sgd", "adam"]


@typed
@dataclass(frozen=True)
class OrdinaryTraining:
    """How a network is trained where nothing of the schedule is kept.

    Attributes:
        optimizer: ``sgd`` with momentum 0.9, or ``adam``.
        lr: Learning rate; 0.01 for sgd and 0.001 for adam by default.
        epochs: Passes over the distilled images, each in a new order.
        batch_size: Images of a minibatch.
        weight_decay: Of sgd: this times the weights is added to the gradient.
        drop: Factor on the learning rate in the second half of the epochs.
        hard_labels: Train on the most probable class of soft labels.
        view: Random transformations of the images, one for each minibatch.
    """

    optimizer: OptimizerName = "sgd"
    lr: float | None = None
    epochs: int = 30
    batch_size: int = 10
    weight_decay: float = 0.0
    drop: float = 1.0
    hard_labels: bool = False
    view: View | None = None

    def __post_init__(self) -> None:
        if self.optimizer not in RATES:
            raise ConfigError(
                f"There is no optimizer {self.optimizer!r} for ordinary training.",
                f"Choose one of: {', '.join(RATES)}.",
            )
        if not 0 <= self.weight_decay < MOST or (self.weight_decay and self.optimizer != "sgd"):
            raise ConfigError(
                f"weight_decay is {self.weight_decay} for {self.optimizer}.",
                "Set it to at least 0; above 0 it is for sgd.",
            )
        if not 0 < self.drop < math.inf:
            raise ConfigError(f"drop is {self.drop}.", "Set it to a positive number.")
        if not 0 < self.rate < math.inf:
            raise ConfigError(f"lr is {self.lr}.", "Set it to a positive number.")
        for name in ("epochs", "batch_size"):
            if not 1 <= getattr(self, name) < MOST:
                raise ConfigError(f"{name} is {getattr(self, name)}.", "Set it to at least 1.")

    @property
    def rate(self) -> float:
        """The learning rate."""
        return RATES[self.optimizer] if self.lr is None else self.lr

    def __str__(self) -> str:
        more = [
            f"weight decay {self.weight_decay:g}" if self.weight_decay else "",
            f"lr × {self.drop:g} at half" if self.drop != 1 else "",
            "hard labels" if self.hard_labels else "",
            f"view {self.view.text}" if self.view else "",
        ]
        said = (
            f"ordinary training: {self.optimizer}, lr {self.rate:g}, {self.epochs} epochs, "
            f"minibatches of {self.batch_size}"
        )
        return ", ".join([said, *filter(None, more)])

    @property
    def rule(self) -> Rule:
        """The update rule."""
        if self.optimizer == "adam":
            return InPlaceAdam(BETAS)
        return WeightDecay(self.weight_decay, SGD) if self.weight_decay else SGD

    def rate_at(self, update: int, examples: int) -> float:
        """The learning rate of an update, counted from 0."""
        epoch = update // math.ceil(examples / self.batch_size)
        return self.rate * (self.drop if 2 * epoch >= self.epochs else 1.0)

    def minibatches(self, seed: int, number: int, examples: int) -> Iterator[Tensor]:
        """The indices of every minibatch that network ``number`` sees."""
        for epoch in range(self.epochs):
            order = stream(seed, "ordinary training", number, epoch)
            yield from torch.randperm(examples, generator=order).split(self.batch_size)


@typed
@with_gradients
def evaluate_ordinary(
    distilled: DistilledData | str | Path,
    data: Any,
    training: OrdinaryTraining | None = None,
    *,
    networks: int | None = None,
    module: nn.Module | None = None,
    architecture: nn.Module | None = None,
    seed: int = 0,
    statistics: Any = None,
    device: DeviceLike = "auto",
    memory: int = DEFAULT_BYTES,
    team: Team = ALONE,
    progress: bool | ProgressCallback = False,
) -> Evaluation:
    """Trains networks on distilled images as on any data set, and tests them on real data.

    Neither the order of the steps nor their learning rates are used: what distilled images are
    worth outside the schedule they were made for.

    Args:
        distilled: Distilled data, or the path of an artefact.
        data: The real data to test on.
        training: The optimizer, its learning rate, epochs and minibatches.
        networks: How many networks, as for :func:`evaluate`: the same ones.
        module: The network, where it is not built in.
        architecture: Another network than the one that was distilled for.
        seed: Which held-out networks, and which orders of the images.
        statistics: What batch normalisation uses, as for :func:`evaluate`.
        device: Where to compute.
        memory: Memory limit in bytes of the networks that are trained side by side.
        team: The processes among which the networks are divided.
        progress: True for a bar, or a callback, called after every group of networks.
    """
    ordinary = training or OrdinaryTraining()
    learners = Learners.of(distilled, data, networks, module, architecture, device)
    network, objective = learners.network, learners.distilled.objective
    steps = learners.distilled.steps.to(network.device, network.dtype)
    images = steps.inputs.flatten(0, 1)
    with shown(progress) as show:
        (found,) = learners.held_out(seed, memory, team).train_and_test(
            _learning(engine_for(network, objective), steps, ordinary, seed),
            learners.data,
            objective,
            after=[ordinary.epochs * math.ceil(len(images) / ordinary.batch_size)],
            batch=images[: ordinary.batch_size],
            rule=SGD,
            statistics=learners.statistics(statistics),
            progress=show,
        )
    notes = [str(ordinary), *([learners.note] if learners.note else [])]
    return replace(found, note="; ".join(notes))


def _learning(engine: Engine, steps: Steps, ordinary: OrdinaryTraining, seed: int) -> Learn:
    """Training on all images in minibatches, each network's in an order of its own."""
    inputs, labels = steps.inputs.flatten(0, 1), steps.labels.flatten(0, 1)
    if ordinary.hard_labels and labels.is_floating_point():
        labels = labels.argmax(-1) if labels.ndim > 1 else labels.round().long()

    def learn(theta0: Weights, numbers: range) -> Iterator[Weights]:
        orders = [ordinary.minibatches(seed, number, len(inputs)) for number in numbers]
        chosen = (torch.stack(each).to(inputs.device) for each in zip(*orders, strict=True))

        def batches() -> Iterator[Step]:
            for t, indices in enumerate(chosen):
                # One rate for each network: each has a batch of its own.
                rates = inputs.new_full((len(numbers),), ordinary.rate_at(t, len(inputs)))
                yield Step(_seen(inputs[indices], ordinary, seed, t), labels[indices], rates)

        return training(ordinary.rule, engine, theta0, batches())

    return learn


def _seen(images: Tensor, ordinary: OrdinaryTraining, seed: int, update: int) -> Tensor:
    """The minibatches (J, N, …) of an update as the view shows them."""
    if ordinary.view is None:
        return images
    look = ordinary.view.draw(stream(seed, "view of ordinary training", update))
    return look(images.flatten(0, 1)).reshape(images.shape)
