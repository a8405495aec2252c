"""The plain loop that speed is measured against computes what the library computes."""

from collections.abc import Callable

import pytest
from benchmarks.own_networks import OWN
from benchmarks.plain_loop import CASES, WIDE, compare, sides
from benchmarks.speed import prepare
from torch import nn

from datadistill.models import VGG11, AlexCifarNet, ConvNet3, LargeNet
from tests.helpers import relative_error

SMALL = {"steps": 2, "epochs": 2, "batch_size": 12, "dtype": "float64", "clip_norm": None}


NARROWER: dict[str, Callable[[], nn.Module]] = {
    "AlexCifarNet": lambda: AlexCifarNet(width=16),
    "ConvNet-3": lambda: ConvNet3(width=24),
    "LargeNet": lambda: LargeNet(width=8),
    "VGG-11": lambda: VGG11(width=6),
}


@pytest.mark.parametrize("name", ["LeNet", *NARROWER, *(name for name in OWN if name != "LSTM")])
def test_its_gradient_is_that_of_the_distiller(name: str) -> None:
    case = {**CASES, **WIDE}[name]
    distillation = prepare(NARROWER.get(name, case.make)(), case.shape, 2, **SMALL)
    loop, ours = sides(distillation)
    losses, images, rates = loop()
    found_losses, found = ours()
    raw = rates * distillation.start().distiller.parameters["raw_rates"].sigmoid()
    assert relative_error(found_losses, losses) < 1e-10
    assert relative_error(found["inputs"], images) < 1e-10
    assert relative_error(found["raw_rates"], raw) < 1e-10


def test_a_row_has_the_processor_time_of_both_sides() -> None:
    row = compare("dropout MLP", CASES["dropout MLP"], 1, 1, {})
    assert row["ratio"] == row["plain loop, s"] / row["ours, s"] > 0
    assert 0 < row["share of peak, %"] < 100
