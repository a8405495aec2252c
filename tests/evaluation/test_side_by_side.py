"""Networks side by side: what they are said to need, and how they are tested."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from datadistill.core.network import Network
from datadistill.core.update import GradientDescent, Momentum
from datadistill.engine.kernels import kernels
from datadistill.engine.side_by_side import SideBySide
from datadistill.models import AlexCifarNet, ConvNet3


def test_networks_that_normalise_over_the_batch_can_be_estimated_too() -> None:
    example = torch.randn(4, 36)
    plain = nn.Sequential(nn.Linear(36, 8), nn.Tanh(), nn.Linear(8, 3))
    normal = nn.Sequential(nn.Linear(36, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 3))
    needs = [
        SideBySide(Network(module, example), example).bytes_in_training(images, rule)
        for module, images, rule in (
            (plain, 10, GradientDescent()),
            (plain, 20, GradientDescent()),
            (normal, 10, GradientDescent()),
            (plain, 10, Momentum()),
        )
    ]
    # Twice what is kept: 36 numbers before the first layer, 8 before the last.
    assert needs[1] - needs[0] == 2 * 10 * 4 * (36 + 8)
    assert needs[2] > needs[0]
    # A velocity as large as the weights, before and after an update.
    assert needs[3] - needs[0] == 2 * 4 * sum(w.numel() for w in plain.parameters())


class Operations(TorchDispatchMode):
    """The names of torch's operations that are called within it."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        self.names.add(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


@pytest.mark.skipif(not kernels(torch.float64).functions, reason="needs the compiled kernels")
@pytest.mark.parametrize("make", [AlexCifarNet, ConvNet3], ids=lambda make: make.__name__)
def test_wide_networks_are_tested_by_the_layers_that_distillation_uses(
    make: Callable[[], nn.Module],
) -> None:
    images = torch.randn(5, 3, 32, 32, dtype=torch.float64)
    network = Network(make(), images, dtype=torch.float64)
    networks, weights = SideBySide(network, images), network.stack([network.weights])
    with Operations() as called:
        found = networks.outputs(weights, images)
    with torch.no_grad():
        expected = network(weights, images)
    assert (found - expected).abs().max() <= 1e-10 * expected.abs().max()
    # Torch's local response normalisation, pooling and wide convolutions take twice as long.
    assert called.names.isdisjoint({"avg_pool3d", "avg_pool2d", "max_pool2d_with_indices"})
