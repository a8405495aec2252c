"""Distils scikit-learn's digits by ``datadistill.core`` alone."""

from collections.abc import Callable

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from datadistill.core.distiller import Distiller
from datadistill.core.engine import Engine
from datadistill.core.initialization import RandomInit
from datadistill.core.network import Network
from datadistill.core.objective import Classification, Objective
from datadistill.core.random import minibatch
from datadistill.core.settings import DistillerConfig

OUTER_STEPS = 20


def distil(
    engine: Callable[[Network, Objective], Engine] | None = None,
) -> tuple[dict[str, Tensor], list[float]]:
    """The distilled data after 20 outer steps in float64, and the loss of each step."""
    images, classes = load_digits(return_X_y=True)
    inputs = torch.from_numpy(images).view(-1, 1, 8, 8) / 8 - 1
    labels = torch.from_numpy(classes).long()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = nn.Sequential(
            nn.Conv2d(1, 6, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(54, 20),
            nn.Tanh(),
            nn.Linear(20, 10),
        )
    network, objective = Network(module, inputs, dtype=torch.float64), Classification()
    config = DistillerConfig(
        steps=3, epochs=2, networks=3, outer_lr=0.1, learning_rate=0.05, batch_size=300
    )
    own = engine(network, objective) if engine else None
    distiller = Distiller(network, RandomInit(), objective, config, own_engine=own)
    state, losses = distiller.init(inputs.shape[1:], labels), list[float]()
    for t in range(OUTER_STEPS):
        chosen = minibatch(config.seed, t, config.batch_size, len(labels))
        state, metrics = distiller.step(state, (inputs[chosen], labels[chosen]))
        losses.append(metrics.loss)
    steps = distiller.distilled(state)
    return {"inputs": steps.inputs, "learning_rates": steps.learning_rates}, losses
