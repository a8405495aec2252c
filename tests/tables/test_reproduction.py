"""The paper's tables and figures by one command: what is run, kept, resumed, and told."""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from datadistill.baselines.paper import Figure
from datadistill.progress import Progress
from datadistill.tables.reproduction import RESULTS, SCALES, Cell, Reproduced
from datadistill.tables.reproduction import catalogue as catalogue_module
from datadistill.tables.reproduction.catalogue import Result
from datadistill.tables.reproduction.making import _paper_cells  # pyright: ignore[reportPrivateUsage]
from datadistill.tables.reproduction.part import Part, differences
from datadistill.tables.reproduction.workshop import Workshop
from tests.cli.helpers import run

TINY: dict[str, Any] = {"iterations": 3, "batch_size": 16, "size": 28, "steps": 1, "epochs": 1}


def digits(*_: object) -> list[Part]:
    linear = {**TINY, "model": "linear"}
    return [
        Part("one", "digits", "1", "digits-fixed", quick=linear),
        Part(
            "two",
            "digits",
            "2",
            "digits-fixed",
            settings={"epochs": 2},
            quick={**linear, "epochs": 2},
        ),
        Part("no data", "clothes", "1", "digits-fixed", quick={**linear, "data": "voc2007"}),
    ]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Result("Accuracy by epochs", ("epochs",), digits, "figure", "It rises.")
    monkeypatch.setitem(catalogue_module.RESULTS, "steps", made)


@pytest.mark.parametrize("scale", SCALES.values(), ids=[*SCALES])
@pytest.mark.parametrize("name", RESULTS)
def test_every_part_has_settings_and_equal_names_mean_equal_runs(
    name: str, scale: Any, tmp_path: Path
) -> None:
    seen: dict[str, Any] = {}
    for result in RESULTS.values():
        for part in result.parts(scale):
            config = part.config(scale, None, tmp_path)
            assert seen.setdefault(part.run, config) == config, part.run
            if scale.name == "paper":
                assert [one for one in differences(config, part.paper()) if "pool" not in one] == []
    parts = RESULTS[name].parts(scale)
    assert len({(part.row, part.column) for part in parts}) == len(parts)


def test_the_papers_figures_stand_beside_ours() -> None:
    found = {
        name: {
            (part.row, column): cell.paper
            for part in result.parts(SCALES["quick"])
            for column, cell in _paper_cells(part, result.columns).items()
        }
        for name, result in RESULTS.items()
    }
    first, second, third = found["mnist-cifar"], found["adaptation"], found["imagenet"]
    assert first["MNIST", "fixed"] == Figure(96.6)
    assert first["CIFAR-10", "random"] == Figure(36.8, 1.2)
    assert first["MNIST", "K-NN k-means"] == Figure(92.2, 0.1)
    assert second["S → M", "few-shot adversarial"] == Figure(74.0, 1.5)
    assert second["U → M", "fixed"] == Figure(93.2)
    assert third["CUB-200", "full fine-tuning"] == Figure(41.21, 0.51)
    assert found["poisoning"]["CIFAR-10", "ours"] == Figure(45.9, 18.1)
    # Every cell of the three tables.
    assert [len(found[name]) for name in ("mnist-cifar", "adaptation", "imagenet")] == [16, 27, 10]
    assert not found["steps"]
    assert not found["learning-rate"]


def test_differences_are_computed_from_the_settings(tmp_path: Path) -> None:
    part = RESULTS["adaptation"].parts(SCALES["quick"])[5]
    config = part.config(SCALES["quick"], None, tmp_path)
    found = differences(config, part.paper())
    assert "channels: 3 → none" in found
    assert any(one.startswith("iterations: 21094 → ") for one in found)
    assert differences(replace(part.paper(), steps=7), part.paper()) == ["steps: 10 → 7"]


def test_a_table_in_the_papers_layout() -> None:
    rows = {
        "MNIST": {"fixed": Cell(95.04, None, 1, Figure(96.6)), "random": Cell(80.0, 7.25, 200)},
        "CIFAR-10": {"fixed": Cell(paper=Figure(54.03))},
    }
    made = Reproduced("t", "Table", "paper", ("fixed", "random"), "table", rows=rows)
    made.notes, made.differences = ["CIFAR-10, fixed: no data"], {"steps: 10 → 5": ["a", "b"]}
    assert made.markdown().splitlines()[2:11] == [
        "|  | fixed | random |",
        "|---|---|---|",
        "| MNIST | 95.0 | 80.0 ± 7.2 |",
        "| MNIST, the paper | 96.6 |  |",
        "| CIFAR-10 | – | – |",
        "| CIFAR-10, the paper | 54.0 |  |",
        "",
        "- Not measured: CIFAR-10, fixed: no data",
        "",
    ]
    assert "- steps: 10 → 5 (a, b)" in made.markdown()


@pytest.mark.usefixtures("small")
def test_what_is_missing_is_run_and_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["reproduce", "steps", "--output", str(tmp_path), "--data-dir", str(tmp_path)]
    assert run(*words) == 0
    said = capsys.readouterr()
    assert "| digits |" in said.out
    assert "- Not measured: clothes, 1: " in said.out
    assert "- The paper: It rises." in said.out
    assert "(the paper's → ours)" in said.out
    made = json.loads((tmp_path / "steps" / "table.json").read_text())
    assert made["runs"] == ["one", "two"]
    assert made["rows"]["digits"]["1"]["mean"] > 0
    assert (tmp_path / "steps" / "steps.svg").read_text().startswith("<?xml")
    assert (tmp_path / "steps" / "steps.png").exists()
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs/*/distilled.safetensors")}
    assert run(*words) == 0  # finished runs are kept
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    again = json.loads((tmp_path / "steps" / "table.json").read_text())
    assert again["rows"] == made["rows"]


@pytest.mark.usefixtures("small")
def test_a_run_that_was_broken_off_is_resumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from datadistill.runs import outcome

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    words = ["reproduce", "steps", "--output", str(tmp_path), "--data-dir", str(tmp_path)]
    with monkeypatch.context() as patch:
        patch.setattr(outcome, "with_test_claim", end)
        assert run(*words) == 130
    assert "run the same command to continue" in capsys.readouterr().err
    assert run(*words) == 0
    assert "Resuming from" in capsys.readouterr().err


def test_a_time_budget_ends_a_run_that_was_broken_off_before(tmp_path: Path) -> None:
    long = {**TINY, "model": "linear", "iterations": 100_000}
    part = Part("long", "digits", "1", "digits-fixed", quick=long)

    def stop(now: Progress) -> None:
        if now.stage == "distilling" and now.done >= 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Workshop(tmp_path, SCALES["quick"], progress=stop).distil(part, 1)
    distilled, _ = Workshop(tmp_path, SCALES["quick"], until=time.monotonic() + 1).distil(part, 1)
    assert distilled.claim
    assert 2 <= distilled.header.configuration["outer_step"] < 100_000


@pytest.mark.usefixtures("small")
def test_a_time_budget_ends_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["reproduce", "steps", "--output", str(tmp_path), "--time-budget"]
    assert run(*words, "0.001s") == 2  # not even one outer step, and nothing was made
    said = capsys.readouterr()
    assert "time budget" in said.out
    assert "Nothing of steps could be made" in said.err


def test_wrong_words_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("reproduce", "table-1") == 2
    assert run("reproduce", "steps", "--scale", "huge") == 2
    assert run("reproduce", "steps", "--threads", "0", "--output", str(tmp_path)) == 2
    assert "threads is 0" in capsys.readouterr().err
