"""A trained module is told from a new one, and its weights are used where they are asked for."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import datadistill as dd
from datadistill.models.trained import looks_trained

from .own_networks import NETWORKS

IMAGES = torch.randn(40, 1, 28, 28, generator=torch.Generator().manual_seed(0))
DATA = (IMAGES, torch.arange(40) % 10)
QUICK: dict[str, Any] = {"iterations": 1, "epochs": 1, "batch_size": 8, "validation": 0.0}


def trained(module: nn.Module, updates: int = 20) -> nn.Module:
    optimizer = torch.optim.Adam(module.parameters(), lr=0.01)
    for _ in range(updates):
        optimizer.zero_grad()
        F.cross_entropy(module(IMAGES), DATA[1]).backward()
        optimizer.step()
    return module


def without_biases() -> nn.Module:
    body = nn.Sequential(nn.Conv2d(1, 2, 5, bias=False), nn.BatchNorm2d(2), nn.Flatten())
    return nn.Sequential(body, nn.Linear(2 * 24 * 24, 10, bias=False))


def drawn_otherwise() -> nn.Module:
    """As many constructors do it: large weights, and biases that are constant or torch's own."""
    module = dd.models.LeNet()
    for parameter in module.parameters():
        if parameter.ndim > 1:
            nn.init.normal_(parameter)
    nn.init.constant_(module.fc3.bias, 2.0)
    return module


@pytest.mark.parametrize("make", [dd.models.LeNet, without_biases])
def test_a_trained_module_looks_trained(make: Callable[[], nn.Module]) -> None:
    assert looks_trained(trained(make()))


@pytest.mark.parametrize("make", [dd.models.LeNet, without_biases, drawn_otherwise, *NETWORKS])
def test_a_new_module_does_not(make: Callable[[], nn.Module]) -> None:
    assert not looks_trained(make())


@pytest.mark.parametrize("initialization", [dd.FixedInit(), dd.RandomInit()])
def test_weights_that_are_not_used_are_told(initialization: dd.Initialization) -> None:
    with pytest.warns(UserWarning, match=r"LeNet looks trained.*FixedInit\.of\(module\)"):
        dd.distill(DATA, trained(dd.models.LeNet()), initialization=initialization, **QUICK)


def test_the_weights_of_a_trained_module_are_kept() -> None:
    module = trained(dd.models.LeNet())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = dd.distill(DATA, module, initialization=dd.FixedInit.of(module), **QUICK)
    assert made.header.initialization.source == "weights of LeNet"
    for name, weight in module.named_parameters():
        assert torch.equal(made.carried[f"initial/{name}"], weight)
    before = dd.learning_curve(made, DATA, after=[0])[0].mean
    with torch.no_grad():
        assert before == float((module(IMAGES).argmax(1) == DATA[1]).double().mean())
    assert before > 0.5
