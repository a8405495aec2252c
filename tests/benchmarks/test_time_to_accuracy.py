"""Time to accuracy: both sides are measured at the same outer steps until target or limit."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from benchmarks.time_to_accuracy import Case, Made, figures, ours, reference, run

from benchmarks import time_to_accuracy
from datadistill.runs.recipes import read_recipe

CASE = Case("digits-fixed", target=0.0, at_least=1, cap=1, networks=1)
SIDES: dict[str, Callable[[], AbstractContextManager[Made]]] = {
    "ours": lambda: ours(CASE, 0, None, "noise"),
    "reference": lambda: reference(CASE, 0, None),
}


@pytest.mark.parametrize("side", SIDES)
def test_a_side_runs_until_the_first_measurement_that_reaches_the_target(
    side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_to_accuracy, "FIRST", 2)
    found = run(SIDES[side](), CASE, limit=1e9)
    assert found.reached
    assert found.outer_steps == 2
    assert found.accuracy is not None
    assert 0 <= found.accuracy <= 1
    assert found.seconds > 0
    assert found.wall > 0


def test_a_side_stops_at_its_limit_without_the_target() -> None:
    found = run(SIDES["reference"](), CASE, limit=1e-9)
    assert (found.reached, found.outer_steps, found.accuracy) == (False, 0, None)


def test_both_sides_hold_out_the_same_data_and_only_the_reference_follows_the_paper() -> None:
    with ours(CASE, 3, None, "k-means") as (mine, _), reference(CASE, 3, None) as (theirs, _):
        assert mine.held_out is not None
        assert theirs.held_out is not None
        assert mine.held_out.labels.equal(theirs.held_out.labels)
        best = read_recipe(CASE.recipe, "best").config
        for name in ("labels", "batch_size", "epochs", "learning_rate", "iterations"):
            assert getattr(mine.config, name) == getattr(best, name)
        assert mine.config.start == "k-means"
        assert (theirs.config.labels, theirs.config.start) == (None, "noise")
        assert mine.config.threads == theirs.config.threads == 1
        assert theirs.config.batch_size == 1024
        assert mine.config.init_seed == theirs.config.init_seed == 3


def test_each_start_of_ours_has_a_row_and_the_promise_is_for_the_first() -> None:
    def reached(seconds: float, *, target: bool = True) -> dict[str, Any]:
        return {"seconds": seconds, "wall": 2 * seconds, "reached": target}

    found = {
        "case": "random",
        "recipe": "mnist-random-100",
        "target": 0.8,
        "at_least": 3,
        "ours": {"k-means": reached(10), "noise": reached(20)},
        "reference": reached(50, target=False),
    }
    first, second = figures([{**found, "seed": seed} for seed in (0, 1)])["rows"]
    assert (first["ours starts from"], first["ratio"], first["at least"]) == ("k-means", 5, 3)
    assert (second["ours starts from"], second["ratio"]) == ("noise", 2.5)
    assert "at least" not in second
    assert first["lower bound"]
    assert first["seeds"] == 2
