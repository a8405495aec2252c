"""Networks of many small operations are traced side by side."""

import pytest
import torch
from benchmarks.own_networks import OWN

from datadistill.core.network import Network
from datadistill.core.objective import Classification
from datadistill.engine import FastEngine
from datadistill.engine.vectorised import Vectorised

SMALL = ("mixer, LayerNorm", "attention", "tied weights")
IN_C = ("dropout MLP",)


@pytest.mark.parametrize("name", OWN)
def test_networks_of_small_operations_stay_side_by_side_when_they_are_traced(name: str) -> None:
    network = Network(OWN[name](), torch.randn(2, 1, 28, 28))
    groups = Vectorised(network).groups(4, traced=True)
    assert groups.size == (4 if name in (*SMALL, *IN_C) else 1)


@pytest.mark.parametrize("name", SMALL)
def test_their_outer_losses_and_gradients_are_those_of_each_alone(name: str) -> None:
    torch.manual_seed(3)
    network = Network(OWN[name]().double(), torch.randn(2, 1, 28, 28).double())
    weights = network.stack([network.weights] * 3)
    leaves = {n: (w + 0.1 * torch.randn_like(w)).requires_grad_() for n, w in weights.items()}
    inputs, labels = torch.randn(4, 1, 28, 28).double(), torch.tensor([3, 1, 4, 1])
    objective = Classification()
    found = FastEngine(network, objective).outer_losses(leaves, inputs, labels)
    expected = network.losses(leaves, inputs, labels, objective.outer_loss)
    torch.testing.assert_close(found, expected)
    pairs = (torch.autograd.grad(one.sum(), [*leaves.values()]) for one in (found, expected))
    for one, other in zip(*pairs, strict=True):
        torch.testing.assert_close(one, other)
