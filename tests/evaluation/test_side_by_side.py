"""What networks side by side are said to need."""

import torch
from torch import nn

from datadistill.core.network import Network
from datadistill.core.update import GradientDescent, Momentum
from datadistill.engine.side_by_side import SideBySide


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
