"""What distilled data for one network are worth beside real images."""

import dataclasses
import importlib
from typing import Any

import pytest
import torch

import datadistill as dd
from datadistill.core.network import Network, Weights
from datadistill.tables.comparison import compare

module = importlib.import_module("datadistill.tables.comparison")
Digits = tuple[dd.LabelledData, dd.LabelledData]


def untrained(network: Network, theta0: Weights, *_: Any, **__: Any) -> Weights:
    """What training on all data is replaced by where it is not at issue."""
    return theta0


@pytest.fixture(scope="module")
def small(digits: Digits) -> Digits:
    train, test = digits
    return train.part(torch.arange(400), "train"), test.part(torch.arange(100), "test")


@pytest.fixture(scope="module")
def distilled(small: Digits) -> dd.DistilledData:
    network = dd.models.MLP(hidden=8)
    return dd.distill(small[0], network, initialization=dd.FixedInit(), iterations=3)


def test_the_figures_are_those_of_the_same_network(
    distilled: dd.DistilledData, small: Digits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SETS", 3)
    comparison = compare(distilled, *small)
    assert comparison.distilled == dd.evaluate(distilled, small[1]).mean
    assert len(comparison.random_real) == 3
    assert comparison.random_real_mean == pytest.approx(sum(comparison.random_real) / 3)
    assert comparison.all_real > comparison.random_real_mean > comparison.untrained


def test_the_test_set_chooses_nothing(
    distilled: dd.DistilledData, small: Digits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SETS", 2)
    monkeypatch.setattr(module, "train_on_all", untrained)
    train, test = small
    wrong = dataclasses.replace(test, labels=(test.labels + 1) % 10)
    one, other = compare(distilled, train, test), compare(distilled, train, wrong)
    assert (one.rate, one.epochs) == (other.rate, other.epochs)
    assert one.random_real != other.random_real
