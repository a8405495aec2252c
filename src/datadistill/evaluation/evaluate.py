"""Training held-out networks on distilled data side by side, and testing them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..artefact import Claim, DistilledData, load
from ..core.initialization import networks_for
from ..core.network import Network, Weights
from ..core.objective import Objective
from ..data import LabelledData, as_data
from ..errors import ConfigError, DataError
from ..progress import Progress, ProgressCallback, silent

TEST_BATCH = 1000  # examples
TEST_BYTES = 2**26  # of inputs, which bounds the batches of large images
SIDE_BY_SIDE = 20
HELD_OUT_NETWORKS = 200


@dataclass(frozen=True)
class Evaluation:
    """How well networks do on real data.

    Attributes:
        values: The metric of each network: its accuracy, or mean squared error.
        losses: The mean loss of each network.
        metric: What ``values`` measures.
        data: What the data set is called.
        split: Which part of it was used.
        examples: How many examples that were.
        seed: Which networks of a random initialization these are.
    """

    values: tuple[float, ...]
    losses: tuple[float, ...]
    metric: str
    data: str
    split: str
    examples: int
    seed: int

    @property
    def mean(self) -> float:
        """Mean of the metric over networks."""
        return sum(self.values) / len(self.values)

    @property
    def std(self) -> float:
        """Standard deviation of the metric over networks; 0 for one."""
        square = sum((value - self.mean) ** 2 for value in self.values)
        return math.sqrt(square / max(len(self.values) - 1, 1))

    def claim(self) -> Claim:
        """The figure as an artefact states it."""
        return Claim(
            metric=self.metric,
            mean=self.mean,
            std=self.std,
            networks=len(self.values),
            data=self.data,
            split=self.split,
            examples=self.examples,
            seed=self.seed,
        )

    def __str__(self) -> str:
        return str(self.claim())


def evaluate(
    distilled: DistilledData | str | Path,
    data: Any,
    *,
    networks: int | None = None,
    module: nn.Module | None = None,
    seed: int = 0,
    device: str = "auto",
    progress: ProgressCallback = silent,
) -> Evaluation:
    """Trains networks on distilled data and tests them on real data.

    Args:
        distilled: Distilled data, or the path of an artefact.
        data: The real data: :class:`LabelledData`, a pair of tensors or a torch ``Dataset``.
        networks: How many networks to train; 1 for a fixed initialization, 200 for others.
            They are never networks that distillation saw.
        module: The network, where it is not built in.
        seed: Which held-out networks.
        device: Where to compute: auto, cpu, cuda or mps.
        progress: Called after every group of networks.
    """
    if not isinstance(distilled, DistilledData):
        distilled = load(distilled)
    data = as_data(data, split="test")
    fixed = distilled.initialization.fixed
    networks = (1 if fixed else HELD_OUT_NETWORKS) if networks is None else networks
    if networks < 1 or (fixed and networks > 1):
        raise ConfigError(
            f"networks is {networks}.",
            "A fixed initialization is one network." if fixed else "Set networks to at least 1.",
        )
    check_inputs(distilled.inputs.shape[2:], data)
    network = distilled.network(module, device)
    distilled.objective.check(network.outputs, data.labels, complete=False)
    values: list[float] = []
    losses: list[float] = []
    for numbers in _groups(networks):
        theta0 = distilled.initial_weights(network, networks_for(seed, "held-out network", numbers))
        trained = distilled.train_networks(network, theta0)
        tested = test_networks(network, trained, data, distilled.objective)
        values += tested.values
        losses += tested.losses
        shown = {distilled.objective.metric: sum(values) / len(values)}
        progress(Progress("evaluating", len(values), networks, shown))
    return Evaluation(
        tuple(values),
        tuple(losses),
        distilled.objective.metric,
        data.name,
        data.split,
        len(data),
        seed,
    )


def test_networks(
    network: Network, weights: Weights, data: LabelledData, objective: Objective
) -> Evaluation:
    """Tests J trained networks on all real data."""
    networks = len(next(iter(weights.values())))
    scores, losses = torch.zeros(2, networks, dtype=torch.float64)
    size = network.dtype.itemsize * data.input_shape.numel()
    together = max(1, min(TEST_BATCH, TEST_BYTES // size))
    with torch.no_grad():
        for begin in range(0, len(data), together):
            batch = slice(begin, begin + together)
            inputs, labels = data.batch(batch, network.device, network.dtype)
            outputs = network(weights, inputs)
            scores += objective.score(outputs, labels).sum(-1).cpu()
            each = torch.stack([objective.outer_loss(one, labels) for one in outputs])
            losses += each.cpu() * len(labels)
    return Evaluation(
        values=tuple((scores / len(data)).tolist()),
        losses=tuple((losses / len(data)).tolist()),
        metric=objective.metric,
        data=data.name,
        split=data.split,
        examples=len(data),
        seed=0,
    )


def check_inputs(wanted: torch.Size, data: LabelledData) -> None:
    """Refuses real data whose inputs have another shape than the distilled ones."""
    if data.input_shape != wanted:
        raise DataError(
            f"The {data.split} split of {data.name} has inputs of shape "
            f"{tuple(data.input_shape)}; the distilled data have {tuple(wanted)}.",
            "Use data of the kind that was distilled, resized to the same shape.",
        )


def _groups(networks: int) -> Iterator[range]:
    for begin in range(0, networks, SIDE_BY_SIDE):
        yield range(begin, min(begin + SIDE_BY_SIDE, networks))
