import copy
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from datadistill import models
from datadistill.core.network import Network, Weights
from datadistill.engine.stacked import stacked
from tests.evaluation.helpers import NETWORKS


class Residual(nn.Module):
    """A sum of what a convolution gives, which is used twice, and odd sizes to pool."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, padding=1)
        self.deep = nn.Conv2d(4, 4, 3, padding=1, groups=2, bias=False)
        self.fc = nn.Linear(4 * 3 * 3, 3, bias=False)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.conv(images)
        maps = maps + self.deep(F.relu(maps))
        return self.fc(torch.flatten(F.max_pool2d(torch.relu(maps), 2), 1))


class SharedAndFrozen(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.into = nn.Linear(98, 5).requires_grad_(False)
        self.first, self.second = nn.Linear(5, 5), nn.Linear(5, 5)
        self.second.weight = self.first.weight
        self.dropout = nn.Dropout()

    def forward(self, images: Tensor) -> Tensor:
        hidden = self.dropout(self.into(images.flatten(1)).tanh())
        return self.second(self.first(hidden).relu())


def sequential(*layers: nn.Module, features: int) -> Callable[[], nn.Module]:
    return lambda: copy.deepcopy(nn.Sequential(*layers, nn.Flatten(), nn.Linear(features, 3)))


class Sized(nn.Sequential):
    """Asks for the number of examples, which is not known when it is traced."""

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input).view(len(input), -1)


KNOWN: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "lenet": (lambda: models.LeNet(3, 32), (3, 32, 32)),
    "mlp": (lambda: models.MLP(2, 7, 3, 5), (2, 7, 7)),
    "linear": (lambda: models.Linear(2, 7, 3), (2, 7, 7)),
    "largenet": (lambda: models.LargeNet(1, 28), (1, 28, 28)),
    "alexcifarnet": (lambda: models.AlexCifarNet(3, 12, 3, width=40), (3, 12, 12)),
    "convnet3": (lambda: models.ConvNet3(2, 8, 3, width=4), (2, 8, 8)),
    "residual": (Residual, (2, 7, 7)),
    "shared and frozen": (SharedAndFrozen, (2, 7, 7)),
    "inputs that are rows": (
        lambda: nn.Sequential(nn.Linear(6, 4), nn.GELU(), nn.Linear(4, 2)),
        (6,),
    ),
    "overlapping pools": (
        sequential(nn.Conv2d(2, 4, 3, 2), nn.ELU(), nn.MaxPool2d(2, 1, 1), features=64),
        (2, 7, 7),
    ),
    "mean pools": (
        sequential(nn.Conv2d(2, 4, 3), nn.ReLU(inplace=True), nn.AvgPool2d(2), features=16),
        (2, 7, 7),
    ),
    "pools rounded up": (
        sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True), features=36),
        (2, 7, 7),
    ),
    "activation first": (
        sequential(nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(2, 4, 2), nn.Sigmoid(), features=16),
        (2, 7, 7),
    ),
}


def hooked() -> nn.Module:
    def double(_module: nn.Module, _inputs: object, outputs: Tensor) -> Tensor:
        return 2 * outputs

    module = models.MLP(1, 28, 3, 5)
    module.fc2.register_forward_hook(double)
    return module


UNKNOWN: dict[str, Callable[[], nn.Module]] = {
    "awkward": NETWORKS["awkward"],
    "batch normalised": NETWORKS["batch normalised"],
    "hook": hooked,
    "padding by reflection": sequential(
        nn.Conv2d(1, 2, 3, padding=1, padding_mode="reflect"), features=2 * 28 * 28
    ),
    "sized": lambda: Sized(nn.Flatten(), nn.Linear(784, 3)),
    "maps that are the output": lambda: nn.Sequential(nn.Conv2d(1, 3, 28), nn.Flatten(2)),
}


def random_weights(network: Network, networks: int) -> Weights:
    random = torch.Generator().manual_seed(1)
    return {
        name: 0.3 * torch.randn(networks, *w.shape, generator=random, dtype=w.dtype)
        for name, w in network.weights.items()
    }


@pytest.mark.parametrize("networks", [1, 3])
@pytest.mark.parametrize("name", KNOWN)
def test_stacked_networks_give_the_outputs_and_gradients_of_each_alone(
    name: str, networks: int
) -> None:
    make, shape = KNOWN[name]
    inputs = torch.randn(5, *shape, generator=torch.Generator().manual_seed(0)).double()
    network = Network(make().double(), inputs)
    fast = stacked(network)
    assert fast is not None
    weights = {n: w.requires_grad_() for n, w in random_weights(network, networks).items()}
    labels = torch.arange(5) % int(network.outputs[0])
    losses = fast.losses(weights, inputs, labels, F.cross_entropy)
    own = fast.own_losses(
        weights, inputs.expand(networks, *inputs.shape), labels.expand(networks, 5), F.cross_entropy
    )
    with torch.no_grad():
        without_graph = fast(weights, inputs)
    for j in range(networks):
        module = network.module({n: w[j].detach() for n, w in weights.items()})
        outputs = module(inputs)
        torch.testing.assert_close(without_graph[j], outputs, rtol=1e-11, atol=1e-12)
        expected = F.cross_entropy(outputs, labels)
        expected.backward()
        found = torch.autograd.grad(losses[j], list(weights.values()), retain_graph=True)
        found_own = torch.autograd.grad(own[j], list(weights.values()), retain_graph=True)
        parameters = dict(module.named_parameters())
        torch.testing.assert_close(losses[j], expected, rtol=1e-11, atol=1e-12)
        for key, one, other in zip(weights, found, found_own, strict=True):
            torch.testing.assert_close(one[j], parameters[key].grad, rtol=1e-9, atol=1e-12)
            torch.testing.assert_close(other[j], parameters[key].grad, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", KNOWN)
def test_stacked_networks_have_the_second_derivatives_of_the_vectorised_ones(name: str) -> None:
    make, shape = KNOWN[name]
    random = torch.Generator().manual_seed(0)
    inputs = torch.randn(2, 5, *shape, generator=random, dtype=torch.float64).requires_grad_()
    network = Network(make().double(), inputs[0])
    fast = stacked(network)
    assert fast is not None
    weights = {n: w.requires_grad_() for n, w in random_weights(network, 2).items()}
    labels = (torch.arange(10) % int(network.outputs[0])).view(2, 5)

    def second(losses: Tensor) -> tuple[Tensor, ...]:
        leaves = list(weights.values())
        gradients = torch.autograd.grad(losses.sum(), leaves, create_graph=True)
        v = [torch.linspace(-1, 1, g.numel()).double().view_as(g) for g in gradients]
        return torch.autograd.grad(gradients, [inputs, *leaves], v, materialize_grads=True)

    found = second(fast.own_losses(weights, inputs, labels, F.cross_entropy))
    expected = second(network.own_losses(weights, inputs, labels, F.cross_entropy))
    for one, other in zip(found, expected, strict=True):
        size = max(1e-3, float(other.abs().max()))  # some are nothing but rounding
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-9 * size)


def test_inputs_are_left_as_they_were() -> None:
    make, shape = KNOWN["activation first"]
    inputs = torch.randn(4, *shape)
    before = inputs.clone()
    network = Network(make(), inputs)
    fast = stacked(network)
    assert fast is not None
    with torch.no_grad():
        fast(random_weights(network, 2), inputs)
    assert torch.equal(inputs, before)


@pytest.mark.parametrize("name", UNKNOWN)
def test_modules_that_are_not_known_layer_by_layer_are_left_alone(name: str) -> None:
    inputs = torch.randn(4, 1, 28, 28)
    assert stacked(Network(UNKNOWN[name](), inputs)) is None
