"""What networks take the examples of each class for."""

from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

import torch
from torch import Tensor, nn

from ..artefact import DistilledData
from ..core.device import DeviceLike
from ..core.initialization import networks_for
from ..core.network import Weights
from ..core.objective import Classification
from ..core.update import train
from ..data import LabelledData
from ..data.running_statistics import Statistics
from ..engine import engine_for
from ..engine.groups import Groups
from ..engine.side_by_side import DEFAULT_BYTES, SideBySide
from ..engine.testing import TEST_BATCH
from ..progress import Progress, ProgressCallback, silent
from .learners import Learners

CLASSES = Classification()


def calls(networks: SideBySide, weights: Weights, data: LabelledData, classes: int) -> Tensor:
    """(J, C, C): how many examples of class c network j calls k.

    Args:
        networks: The architecture.
        weights: The stacked weights of J networks.
        data: The real data to test on.
        classes: C, how many classes the networks tell apart.
    """
    count, network = len(next(iter(weights.values()))), networks.network
    pairs = torch.zeros(count, classes**2, dtype=torch.long)
    together = networks.test_batch(TEST_BATCH)
    for begin in range(0, len(data), together):
        batch = slice(begin, begin + together)
        inputs, labels = data.batch(batch, network.device, network.dtype)
        pair = (labels * classes + CLASSES.called(networks.outputs(weights, inputs))).cpu()
        pairs.scatter_add_(1, pair, torch.ones_like(pair))
    return pairs.view(count, classes, classes)


def confusion(
    distilled: DistilledData | str | Path,
    data: Any,
    *,
    networks: int | None = None,
    module: nn.Module | None = None,
    seed: int = 0,
    device: DeviceLike = "auto",
    memory: int = DEFAULT_BYTES,
    progress: ProgressCallback = silent,
) -> tuple[Tensor, Tensor]:
    """The confusion matrices of networks before and after training on distilled data.

    Args:
        distilled: Distilled data for classification, or the path of an artefact.
        data: The real data to test on.
        networks: How many networks; as for :func:`evaluate`, like all that follows.
        module: The network, where it is not built in.
        seed: Which held-out networks.
        device: Where to compute.
        memory: Memory limit in bytes.
        progress: Called after every group of networks.

    Returns:
        Two matrices (C, C): how many examples of class c are called k, by all networks together.
    """
    learners = Learners.of(distilled, data, networks, module, None, device)
    network, distilled = learners.network, learners.distilled
    steps = distilled.steps.to(network.device, network.dtype)
    engine, classes = engine_for(network, distilled.objective), CLASSES.classes(network.outputs)
    statistics = Statistics.of(None, steps.inputs, network)
    architecture = SideBySide(network, learners.data.example(), memory)
    drawing, done = Lock(), 0

    def called(weights: Weights) -> Tensor:
        usable = statistics.added_to(weights, network)
        return calls(architecture, usable, learners.data, classes).sum(0)

    def work(numbers: range, wanted: Callable[[], None]) -> Tensor:
        nonlocal done
        with drawing:  # what draws the weights may not be made for several threads
            theta0 = learners.sample(networks_for(seed, "held-out network", numbers))
        wanted()
        with torch.no_grad():
            before = called(theta0)
            after = called(train(distilled.rule, engine, theta0, steps))
        with drawing:
            done += len(numbers)
            progress(Progress("confusion", done, learners.networks))
        return torch.stack([before, after])

    groups = Groups.within(
        memory,
        learners.networks,
        each=architecture.bytes_in_training(steps.inputs.shape[1], distilled.rule),
        besides=architecture.bytes_in_testing(),
        # Image files are decoded by processes of their own, for one thread.
        threads=architecture.threads if isinstance(learners.data.inputs, Tensor) else 1,
    )
    before, after = torch.stack(list(groups.each(work))).sum(0)
    return before, after
