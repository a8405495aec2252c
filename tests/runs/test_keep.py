"""Which distilled data a run keeps: never the worse silently."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import datadistill as dd
from datadistill.artefact import Claim
from datadistill.runs.config import config_from
from datadistill.runs.distillation import Distillation
from datadistill.runs.preparation import prepare
from datadistill.runs.recipes import read_recipe, recipe_names
from datadistill.runs.run import Run
from datadistill.runs.store.folder import RunFolder
from datadistill.runs.store.state import Measured, RunState
from tests.runs.helpers import DATA, SETTINGS


def distillation(**settings: Any) -> Distillation:
    config = config_from({"model": "linear", **SETTINGS, **settings})
    return prepare(config, DATA, dd.models.Linear())


def measured(state: RunState, outer_step: int, mean: float, **fields: Any) -> Measured:
    claim: dict[str, Any] = {
        "metric": "accuracy",
        "std": 0.0,
        "networks": 1,
        "examples": 1000,
        "seed": 0,
        **fields,
    }
    claim |= {"mean": mean, "data": "digits", "split": "validation"}
    return Measured(outer_step, prepared.images(state.distiller), Claim(**claim))


prepared = distillation()


@pytest.mark.parametrize(
    ("best", "last", "fields", "kept"),
    [
        (0.697, 0.630, {}, True),  # 1,000 examples: two standard errors are 4.2 points
        (0.660, 0.630, {}, False),
        (0.660, 0.630, {"examples": 10_000}, True),
        (0.660, 0.630, {"examples": 10_000, "networks": 4, "std": 0.05}, False),
    ],
)
def test_by_default_the_best_is_kept_if_it_beats_the_last_by_more_than_noise(
    best: float, last: float, fields: dict[str, Any], kept: bool
) -> None:
    start = prepared.start()
    state = replace(start, distiller=replace(start.distiller, outer_step=12))
    state = replace(
        state, best=measured(state, 5, best, **fields), last=measured(state, 12, last, **fields)
    )
    assert state.keeps_best("auto", higher_is_better=True) == kept
    assert state.keeps_best("best", higher_is_better=True)
    assert not state.keeps_best("last", higher_is_better=True)


def test_a_lower_error_is_better() -> None:
    state = prepared.start()
    low, high = (
        measured(state, step, mean, metric="mean squared error", std=0.1, networks=100)
        for step, mean in ((1, 0.5), (2, 0.6))
    )
    assert low.beats(high, higher_is_better=False, errors=2)
    assert not high.beats(low, higher_is_better=False)


def test_both_figures_and_the_choice_are_printed(tmp_path: Path) -> None:
    for keep in ("best", "last"):
        said: list[str] = []
        made = distillation(keep=keep, seed=1)  # which becomes worse towards its end
        Run(made, RunFolder(tmp_path / keep), tell=said.append).go()
        best, last = (dd.load(tmp_path / keep / f"{n}.safetensors") for n in ("best", "last"))
        steps = [one.header.configuration["outer_step"] for one in (best, last)]
        assert steps[0] < steps[1] == 12, "or this test shows nothing"
        assert said[-1] == (
            f"Last (outer step 12): {last.claim}\n"
            f"Best (outer step {steps[0]}): {best.claim}\n"
            f"Kept the {keep}."
        )


@pytest.mark.parametrize("name", recipe_names())
def test_the_papers_preset_keeps_the_last(name: str) -> None:
    assert read_recipe(name, "paper").config.keep == "last"
