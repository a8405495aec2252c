"""A small table, made once."""

from pathlib import Path

import pytest
import torch

import datadistill as dd
from datadistill.tables import BaselineTable

from .helpers import Digits, table_of


@pytest.fixture(scope="session")
def small(digits: Digits) -> Digits:
    train, test = digits
    return train.part(torch.arange(300), "train"), test.part(torch.arange(80), "test")


@pytest.fixture(scope="session")
def distilled(small: Digits) -> dd.DistilledData:
    return dd.distill(
        small[0], dd.models.MLP(hidden=8), steps=2, epochs=3, iterations=3, learning_rate=0.05
    )


@pytest.fixture(scope="session")
def whole(
    distilled: dd.DistilledData, small: Digits, tmp_path_factory: pytest.TempPathFactory
) -> tuple[BaselineTable, Path]:
    """A table that was never interrupted, and its file."""
    path = tmp_path_factory.mktemp("whole") / "results.json"
    return table_of(distilled, small, path), path
