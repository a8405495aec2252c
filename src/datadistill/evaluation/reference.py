"""The reference every distillation is measured by: ordinary training on all real data."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from ..core.distilled import Step
from ..core.network import Network, Weights
from ..core.objective import Objective
from ..core.random import minibatch, stream
from ..core.update import training
from ..data import LabelledData
from ..engine import engine_for
from ..engine.in_place import InPlaceAdam, OnRealData
from ..progress import Progress, ProgressCallback, silent


@dataclass(frozen=True)
class FullTraining:
    """How networks are trained on all real data, by Adam.

    Attributes:
        epochs: Passes over the data.
        batch_size: Examples of a minibatch.
        lr: Learning rate.
        seed: Seed of the order of the examples, and of their views if they are augmented.
    """

    epochs: int = 30
    batch_size: int = 64
    lr: float = 1e-3
    seed: int = 0


USUAL = FullTraining()


def train_on_all(
    network: Network,
    theta0: Weights,
    data: LabelledData,
    objective: Objective,
    how: FullTraining = USUAL,
    progress: ProgressCallback = silent,
) -> Weights:
    """Trains J networks on an entire data set, augmented if it is; returns their weights."""
    *_, weights = learning_on_all(network, theta0, data, objective, how, progress)
    return weights


def learning_on_all(
    network: Network,
    theta0: Weights,
    data: LabelledData,
    objective: Objective,
    how: FullTraining = USUAL,
    progress: ProgressCallback = silent,
) -> Iterator[Weights]:
    """The same, epoch by epoch: the weights after each, which change in place."""
    engine = OnRealData(engine_for(network, objective))
    updates = max(len(data) // how.batch_size, 1)
    total = how.epochs * updates

    def batches() -> Iterator[Step]:
        for t in range(total):
            indices = minibatch(how.seed, t, how.batch_size, len(data))
            views = stream(how.seed, "training on all, views", t)
            inputs, labels = data.batch(indices, network.device, network.dtype, views)
            yield Step(inputs, labels, torch.tensor(how.lr))

    for t, weights in enumerate(training(InPlaceAdam(), engine, theta0, batches())):
        progress(Progress("training on all", t, total))
        if t and t % updates == 0:
            yield weights
