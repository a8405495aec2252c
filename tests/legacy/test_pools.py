"""A pool of an earlier version: read, drawn from, extended."""

import shutil
from pathlib import Path

import pytest

import datadistill as dd

from .conftest import Digits
from .helpers import POOL, datadistill

WORDS = ["digits", "--size", "8", "--model", "mlp", "--model-args", "hidden=6", "--threads", "1"]


def test_its_networks_reach_what_the_index_says(digits8: Digits) -> None:
    pool = dd.Pool(POOL)
    assert (pool.count("train"), pool.count("held-out")) == (5, 3)
    made = dd.distill(
        digits8[0],
        dd.models.MLP(1, 8, 10, 6),
        initialization=dd.PoolInit(pool),
        iterations=2,
        test=digits8[1],
    )
    untrained = dd.learning_curve(made, digits8[1], after=[0])[0]
    assert untrained.values == pytest.approx(pool.accuracies("held-out", test=True), abs=3 / 360)
    assert min(untrained.values) > 0.6


def test_one_of_its_networks_is_a_fixed_initialization(digits8: Digits) -> None:
    pool, module = dd.Pool(POOL), dd.models.MLP(1, 8, 10, 6)
    made = dd.distill(
        digits8[0], module, initialization=pool.fixed(4), iterations=1, test=digits8[1]
    )
    untrained = dd.learning_curve(made, digits8[1], after=[0])[0]
    assert untrained.mean == pytest.approx(pool.accuracies("train", test=True)[4], abs=3 / 360)


@pytest.mark.usefixtures("same_processor")
def test_it_is_extended(here: Path) -> None:
    before, place = dd.Pool(POOL), Path(shutil.copytree(POOL, here / "digits-mlp"))
    counts = ["--networks", "6", "--held-out", "4", "--pool", str(place), "--quiet"]
    assert datadistill("pretrain", *WORDS, *counts, "--epochs", "29") == 2  # other networks
    assert datadistill("pretrain", *WORDS, *counts, "--epochs", "30") == 0
    after = dd.Pool(place)
    assert (after.count("train"), after.count("held-out")) == (6, 4)
    assert after.hashes("train", 5) == before.hashes("train")
    assert after.hashes("held-out", 3) == before.hashes("held-out")
    assert after.origin.identity == before.origin.identity
    assert min(after.accuracies("train", test=True)) > 0.6
