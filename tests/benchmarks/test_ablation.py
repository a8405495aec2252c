"""The ablation of outer schedules: one setting changed at a time, kept run by run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from benchmarks.ablation import NAME, Ablation, main, reached
from benchmarks.results import Results

from benchmarks import ablation

SMALL = Ablation(
    "digits-fixed", 3, (0, 1), 1, {"the recipe": {}, "larger rates": {"learning_rate": 0.5}}
)


def entry(path: Path) -> Mapping[str, Any]:
    return Results.read(path).entries[NAME]


def test_every_change_is_run_with_every_seed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ablation, "ABLATIONS", {"small": SMALL})
    output = tmp_path / "results.json"
    main(["--output", str(output)])
    first = entry(output)
    assert {name: len(found) for name, found in first["runs"].items()} == {
        "small: the recipe": 2,
        "small: larger rates": 2,
    }
    assert [row["changed"] for row in first["rows"]] == ["the recipe", "larger rates"]
    assert first["runs"]["small: the recipe"] != first["runs"]["small: larger rates"]
    capsys.readouterr()
    main(["--output", str(output)])  # goes on, and there is nothing left to do
    assert capsys.readouterr().out == ""
    assert entry(output) == first


def test_a_run_is_measured_on_held_out_training_data(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    measured = ablation.accuracy_of

    def spy(distillation: Any, steps: Any, networks: int) -> float:
        seen.append(len(distillation.held_out))
        return measured(distillation, steps, networks)

    monkeypatch.setattr(ablation, "accuracy_of", spy)
    assert 0 <= reached(SMALL, {"validation": 0.25}, 0, None) <= 1
    assert seen == [360]  # a quarter of 1,437
