"""Time to accuracy: both sides are measured at the same outer steps until target or limit."""

import pytest
from benchmarks.time_to_accuracy import Case, Side, ours, reference, run

from benchmarks import time_to_accuracy
from datadistill.runs.recipes import read_recipe

CASE = Case("digits-fixed", target=0.0, at_least=1, cap=1, networks=1)


@pytest.mark.parametrize("side", [ours, reference])
def test_a_side_runs_until_the_first_measurement_that_reaches_the_target(
    side: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_to_accuracy, "FIRST", 2)
    found = run(side, CASE, seed=0, data_dir=None, limit=1e9)
    assert found.reached
    assert found.outer_steps == 2
    assert found.accuracy is not None
    assert 0 <= found.accuracy <= 1
    assert found.seconds > 0


def test_a_side_stops_at_its_limit_without_the_target() -> None:
    found = run(reference, CASE, seed=0, data_dir=None, limit=1e-9)
    assert (found.reached, found.outer_steps, found.accuracy) == (False, 0, None)


def test_both_sides_hold_out_the_same_data_and_only_the_reference_follows_the_paper() -> None:
    with ours(CASE, 3, None) as (mine, _), reference(CASE, 3, None) as (theirs, _):
        assert mine.held_out is not None
        assert theirs.held_out is not None
        assert mine.held_out.labels.equal(theirs.held_out.labels)
        assert mine.config.batch_size == read_recipe(CASE.recipe).config.batch_size
        assert theirs.config.batch_size == 1024
        assert mine.config.init_seed == theirs.config.init_seed == 3
