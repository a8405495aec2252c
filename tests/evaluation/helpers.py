"""Held-out networks trained and tested one by one, written without the library's engine."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim.swa_utils import update_bn

from datadistill import LabelledData, RandomInit, models
from datadistill.core.distilled import Steps
from datadistill.core.initialization import networks_for
from datadistill.core.network import Network, Weights

CLASSES = 3


class Awkward(nn.Module):
    """A module that ``vmap`` cannot compute, of which nothing can be traced either."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(28 * 28, CLASSES)
        self.scale = nn.Parameter(torch.ones(CLASSES))

    def forward(self, images: Tensor) -> Tensor:
        features = self.fc(images.flatten(1))
        if float(self.scale.detach().sum()) > 1e6:  # asks for a value, which vmap refuses
            features = features * 0
        return torch.tanh(features) * self.scale


class BatchNormalised(nn.Module):
    """Its outputs depend on the other examples of the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 4, 5, stride=3), nn.BatchNorm2d(4), nn.ReLU())
        self.head = nn.Linear(4 * 8 * 8, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.body(images).flatten(1))


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "lenet": lambda: models.LeNet(classes=CLASSES),
    "mlp": lambda: models.MLP(classes=CLASSES, hidden=6),
    "awkward": Awkward,
    "batch normalised": BatchNormalised,
}


class Problem(NamedTuple):
    """Distilled data of 2 steps × 2 epochs, and real data, all in float64."""

    name: str
    network: Network
    steps: Steps
    data: LabelledData

    def sample(self, generators: Sequence[torch.Generator]) -> Weights:
        return RandomInit().sample(self.network, generators)


def problem(name: str, examples: int = 40) -> Problem:
    random = torch.Generator().manual_seed(5)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    with torch.random.fork_rng():
        torch.manual_seed(3)
        module = NETWORKS[name]().double()
    labels = torch.arange(CLASSES).expand(2, CLASSES).contiguous()
    rates = torch.tensor([[0.05, 0.1], [0.02, 0.03]], dtype=torch.float64)
    return Problem(
        name,
        Network(module, normal(2, 1, 28, 28)),
        Steps(normal(2, CLASSES, 1, 28, 28), labels, rates),
        LabelledData(normal(examples, 1, 28, 28), torch.arange(examples) % CLASSES),
    )


class Alone(NamedTuple):
    """What one network reaches: accuracy, loss, and accuracy of each class."""

    value: float
    loss: float
    by_class: list[float]


def alone(problem: Problem, seed: int, number: int, updates: int) -> Alone:
    """Trains one network by plain gradient descent, and tests it on all data at once.

    Normalisation layers take the statistics of the batch in training, and running statistics of
    the distilled images in the test, as torch itself measures them.
    """
    theta0 = problem.sample(networks_for(seed, "held-out network", [number]))
    module = NETWORKS[problem.name]().double().train()
    module.load_state_dict({name: w[0] for name, w in theta0.items()}, strict=False)
    schedule = [(epoch, step) for epoch in range(2) for step in range(2)]
    for epoch, step in schedule[:updates]:
        outputs = module(problem.steps.inputs[step])
        module.zero_grad()
        F.cross_entropy(outputs, problem.steps.labels[step]).backward()
        with torch.no_grad():
            for parameter in module.parameters():
                if parameter.grad is not None:
                    parameter -= problem.steps.learning_rates[epoch, step] * parameter.grad
    assert isinstance(problem.data.inputs, Tensor)
    update_bn(problem.steps.inputs, module)
    module.eval()
    with torch.no_grad():
        outputs = module(problem.data.inputs)
    labels = problem.data.labels
    right = (outputs.argmax(1) == labels).double()
    return Alone(
        float(right.mean()),
        float(F.cross_entropy(outputs, labels)),
        [float(right[labels == label].mean()) for label in range(CLASSES)],
    )
