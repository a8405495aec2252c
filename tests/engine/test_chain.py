"""Losses and gradients without autograd."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from datadistill import models
from datadistill.core.network import Network, Weights
from datadistill.engine.stacked import stacked
from tests.engine.test_stacked import Residual, SharedAndFrozen


class TiedAndFrozen(nn.Sequential):
    def __init__(self) -> None:
        into, tied = nn.Linear(98, 5).requires_grad_(False), nn.Linear(5, 5, bias=False)
        super().__init__(nn.Flatten(), into, nn.ReLU(), nn.Dropout(), tied, nn.ReLU(), tied)


CHAINS = {
    "lenet": (lambda: models.LeNet(3, 32), (3, 32, 32)),
    "mlp": (lambda: models.MLP(2, 7, 3, 5), (2, 7, 7)),
    "linear": (lambda: models.Linear(2, 7, 3), (2, 7, 7)),
    "tied and frozen": (TiedAndFrozen, (2, 7, 7)),
}


def several(network: Network, networks: int) -> Weights:
    weights = network.stack([network.weights] * networks)
    return {name: w + 0.1 * torch.randn_like(w) for name, w in weights.items()}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("networks", [1, 3])
@pytest.mark.parametrize("name", CHAINS)
def test_gradients_are_added_that_autograd_would_give(
    name: str, networks: int, dtype: torch.dtype
) -> None:
    torch.manual_seed(1)
    make, shape = CHAINS[name]
    network = Network(make().to(dtype), torch.randn(2, *shape, dtype=dtype))
    fast, weights = stacked(network), several(network, networks)
    assert fast
    assert fast.chain
    inputs, labels = torch.randn(5, *shape, dtype=dtype), torch.tensor([0, 1, 2, 1, 0])
    before = {name: torch.randn_like(w) for name, w in weights.items()}
    to = {name: w.clone() for name, w in before.items()}
    given = inputs.clone()
    losses = fast.add_loss(weights, given, labels, F.cross_entropy, 0.3, to)
    leaves = {name: w.clone().requires_grad_() for name, w in weights.items()}
    expected = 0.3 * network.losses(leaves, inputs, labels, F.cross_entropy)
    gradients = torch.autograd.grad(expected.sum(), [*leaves.values()])
    torch.testing.assert_close(losses, expected.detach())
    for own, g in zip(weights, gradients, strict=True):
        torch.testing.assert_close(to[own], before[own] + g)
    assert torch.equal(given, inputs)


@pytest.mark.parametrize("make", [Residual, SharedAndFrozen])  # a sum of layers; tanh
def test_other_networks_are_left_to_autograd(make: type[nn.Module]) -> None:
    network = Network(make(), torch.randn(2, 2, 7, 7))
    fast = stacked(network)
    assert fast
    assert not fast.chain
