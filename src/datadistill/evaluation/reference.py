"""The reference every distillation is measured by: ordinary training on all real data."""

from collections.abc import Iterator
from typing import Any

import torch

from ..core.network import Network, Weights
from ..core.objective import Objective
from ..core.optimizer import adam, adam_init
from ..core.random import minibatch, stream
from ..core.update import gradient
from ..data import LabelledData
from ..progress import Progress, ProgressCallback, silent
from .side_by_side import SideBySide


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
    """The same, epoch by epoch: the weights after each."""
    weights, state = theta0, adam_init(theta0)
    architecture = SideBySide(network, data.example())
    updates = max(len(data) // batch_size, 1)
    total = epochs * updates
    for t in range(total):
        with torch.no_grad():
            indices = minibatch(seed, t, batch_size, len(data))
            views = stream(seed, "training on all, views", t)
            inputs, labels = data.batch(indices, network.device, network.dtype, views)
            direction = gradient(
                lambda w, x=inputs, y=labels: architecture.losses(
                    w, x, y, objective.outer_loss
                ).sum(),
                weights,
            )
            weights, state = adam(weights, direction, state, lr, (0.9, 0.999))
        progress(Progress("training on all", t + 1, total))
        if (t + 1) % updates == 0:
            yield weights
