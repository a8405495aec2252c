"""The reference every distillation is measured by: ordinary training on all real data."""

from collections.abc import Iterator
from typing import Any

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


def train_on_all(
    network: Network,
    theta0: Weights,
    data: LabelledData,
    objective: Objective,
    *,
    epochs: int = 30,
    batch_size: int = 64,
    lr: float = 1e-3,
    seed: int = 0,
    progress: ProgressCallback = silent,
) -> Weights:
    """Trains J networks with Adam on a whole data set, augmented if it is; returns weights."""
    settings: dict[str, Any] = {"epochs": epochs, "batch_size": batch_size, "lr": lr, "seed": seed}
    *_, weights = learning_on_all(network, theta0, data, objective, **settings, progress=progress)
    return weights


def learning_on_all(
    network: Network,
    theta0: Weights,
    data: LabelledData,
    objective: Objective,
    *,
    epochs: int,
    batch_size: int = 64,
    lr: float = 1e-3,
    seed: int = 0,
    progress: ProgressCallback = silent,
) -> Iterator[Weights]:
    """The same, epoch by epoch: the weights after each, which change in place."""
    engine = OnRealData(engine_for(network, objective))
    updates = max(len(data) // batch_size, 1)
    total = epochs * updates

    def batches() -> Iterator[Step]:
        for t in range(total):
            indices = minibatch(seed, t, batch_size, len(data))
            views = stream(seed, "training on all, views", t)
            inputs, labels = data.batch(indices, network.device, network.dtype, views)
            yield Step(inputs, labels, torch.tensor(lr))

    for t, weights in enumerate(training(InPlaceAdam(), engine, theta0, batches())):
        progress(Progress("training on all", t, total))
        if t and t % updates == 0:
            yield weights
