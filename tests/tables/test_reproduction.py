"""The paper's tables and figures by one command: what is run, kept, resumed, and told."""

import json
import re
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from pydantic import TypeAdapter

from datadistill.baselines import paper as paper_module
from datadistill.baselines.paper import Figure
from datadistill.progress import Progress, silent
from datadistill.tables.reproduction import RESULTS, SCALES, Cell, Reproduced, make_result
from datadistill.tables.reproduction import catalogue as catalogue_module
from datadistill.tables.reproduction.catalogue import Result
from datadistill.tables.reproduction.kept import Figures, KeptFigures
from datadistill.tables.reproduction.making import _paper_cells  # pyright: ignore[reportPrivateUsage]
from datadistill.tables.reproduction.part import Part, differences, scale_differences
from datadistill.tables.reproduction.workshop import Workshop
from tests.cli.helpers import run

TINY: dict[str, Any] = {"iterations": 3, "batch_size": 16, "size": 28, "steps": 1, "epochs": 1}
QUICK = SCALES["quick"]
LONG = {**TINY, "model": "linear", "iterations": 100_000}


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


def test_only_numbers_that_a_table_uses_are_listed() -> None:
    def listed(name: str) -> str:
        quick, paper = SCALES["quick"], SCALES["paper"]
        result = RESULTS[name]
        return "; ".join(scale_differences(quick, paper, result.parts(quick), result.columns))

    assert listed("steps") == (
        "held-out networks: 200 → 3; training examples of each data set: all → 5000"
    )
    assert "networks of a pool: 2000 → 3" in listed("poisoning")
    assert "sets of real images: 10 → 2" in listed("mnist-cifar")
    assert "its updates: 100 200 400 → 20" in listed("adaptation")
    assert "few-shot" not in listed("imagenet")
    assert "networks trained on all real data" in listed("imagenet")


def test_the_differences_of_a_setting_share_a_line() -> None:
    made = Reproduced("t", "Table", "paper", ("a",), "table", runs=["x", "y"])
    made.differences = {"steps: 10 → 5": ["x"], "epochs: 3 → 1": ["x", "y"], "steps: 10 → 2": ["y"]}
    assert made.markdown().splitlines()[-2:] == [
        "- steps: 10 → 5 (x); 10 → 2 (y)",
        "- epochs: 3 → 1",
    ]


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
    figure = (tmp_path / "steps" / "steps.svg").read_text()
    assert "digits: digits, linear; 1 network, tested on 360 examples." in figure
    assert "Seed 0; band: one standard deviation" in " ".join(re.findall(r">([^<]+)<", figure))
    with Image.open(tmp_path / "steps" / "steps.png") as picture:
        assert "Seed 0" in picture.info["Description"]
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


def break_off(part: Part, folder: Path) -> None:
    """Begins a part, and stops it after a few outer steps."""

    def stop(now: Progress) -> None:
        if now.stage == "distilling" and now.done >= 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Workshop(folder, SCALES["quick"], progress=stop).distil(part, 1)


def test_a_time_budget_ends_a_run_that_was_broken_off_before(tmp_path: Path) -> None:
    part = Part("long", "digits", "1", "digits-fixed", quick=LONG)
    break_off(part, tmp_path)
    distilled, _ = Workshop(tmp_path, SCALES["quick"], until=time.monotonic() + 5).distil(part, 1)
    assert distilled.claim
    assert 2 <= distilled.header.configuration["outer_step"] < 100_000


@pytest.mark.usefixtures("small")
def test_a_time_budget_ends_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["reproduce", "steps", "--output", str(tmp_path), "--time-budget"]
    assert run(*words, "0.001s") == 2  # not even one outer step, and nothing was made
    said = capsys.readouterr()
    assert "time budget" in said.out
    assert "Nothing of steps could be made" in said.err


@pytest.mark.usefixtures("small")
def test_finished_parts_show_their_figures_when_the_time_is_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["reproduce", "steps", "--output", str(tmp_path), "--data-dir", str(tmp_path)]
    assert run(*words) == 0
    shutil.rmtree(tmp_path / "runs" / "two")
    before = json.loads((tmp_path / "steps" / "table.json").read_text())
    capsys.readouterr()
    assert run(*words, "--time-budget", "0.001s") == 0
    assert "- Not measured: digits, 2: The time budget has ended" in capsys.readouterr().out
    after = json.loads((tmp_path / "steps" / "table.json").read_text())
    assert after["runs"] == ["one"]
    assert after["rows"]["digits"] == {"1": before["rows"]["digits"]["1"]}
    assert after["names"] == before["names"]


def table_of_digits(*_: object) -> list[Part]:
    quick = {**TINY, "model": "linear"}
    return [Part("one", "Digits", "ours", "digits-fixed", quick=quick, measured="baselines")]


@pytest.fixture
def small_table(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Result("Digits", ("ours", "random real", "k-means"), table_of_digits)
    monkeypatch.setitem(catalogue_module.RESULTS, "mnist-cifar", made)


@pytest.mark.usefixtures("small_table")
def test_the_time_budget_ends_baselines_too_and_the_next_call_adds_them(tmp_path: Path) -> None:
    def slow(now: Progress) -> None:
        if now.stage.startswith("k-means"):
            workshop.until = time.monotonic()  # now it is up

    workshop = Workshop(tmp_path, SCALES["quick"], until=time.monotonic() + 600, progress=slow)
    first = make_result("mnist-cifar", workshop)
    assert first.notes == ["Digits, baselines: The time budget has ended"]
    assert [*first.rows["Digits"]] == ["ours"]
    again = make_result("mnist-cifar", workshop)  # still up: what is finished stands there
    assert (again.rows, again.notes) == (first.rows, first.notes)
    workshop.until, workshop.progress = None, silent
    whole = make_result("mnist-cifar", workshop)
    assert whole.notes == []
    assert whole.rows["Digits"]["ours"] == first.rows["Digits"]["ours"]
    assert whole.rows["Digits"]["k-means"].mean
    workshop.until = time.monotonic()
    assert make_result("mnist-cifar", workshop).rows == whole.rows


def test_other_settings_have_figures_of_their_own(tmp_path: Path) -> None:
    part, *_ = digits()
    workshop = Workshop(tmp_path, SCALES["quick"])
    workshop.distil(part, 1)
    kept = KeptFigures(workshop.run_folder(part), part, SCALES["quick"])
    assert kept.read() is None
    kept.write({"1": Cell(12.5, None, 1)}, complete=True)
    assert kept.read() == Figures({"1": Cell(12.5, None, 1)})
    for other in (
        replace(kept, part=replace(part, quick={**part.quick, "batch_size": 17})),
        replace(kept, part=replace(part, column="2")),
        replace(kept, scale=replace(SCALES["quick"], networks=4)),
    ):
        assert other.read() is None
    results = kept.folder.read_results()
    assert results["run"]["outer_steps"] == 3
    (one,) = results["reproduced"].values()
    one["cells"] = "spoilt"
    kept.folder.results.write_text(json.dumps(results))
    assert kept.read() is None
    kept.folder.distilled.unlink()
    assert kept.read() is None


def test_a_budget_that_shortens_a_run_is_told_as_a_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = Part("long", "digits", "1", "digits-fixed", quick=LONG)
    made = Result("Digits", ("1",), lambda _: [long])
    monkeypatch.setitem(catalogue_module.RESULTS, "mnist-cifar", made)
    break_off(long, tmp_path)
    workshop = Workshop(tmp_path, SCALES["quick"], until=time.monotonic() + 1)
    found = make_result("mnist-cifar", workshop)
    made_steps = workshop.run_folder(long).read_results()["run"]["outer_steps"]
    assert 1 <= made_steps < 100_000
    (said,) = [one for one in found.differences if one.startswith("iterations")]
    assert said.endswith(f" → {made_steps}")


@pytest.mark.parametrize("name", RESULTS)
def test_stand_ins_are_called_by_their_own_names_in_their_rows(name: str, tmp_path: Path) -> None:
    for scale in SCALES.values():
        for part in RESULTS[name].parts(scale):
            ours, paper = part.config(scale, None, tmp_path), part.paper()
            pool = part.pool_at(scale)
            stands_in = [ours.data] if ours.data != paper.data else []
            stands_in += [pool.data] if pool and part.pool and pool.data != part.pool.data else []
            assert (part.row_at(scale) != part.row) == bool(stands_in), part.run
            assert all(data in part.row_at(scale) for data in stands_in), part.run


def test_a_row_tells_stand_ins_and_subsets_and_the_papers_row_its_own_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = {**TINY, "model": "linear", "recipe": "digits-fixed"}
    part = Part("one", "PASCAL-VOC 2007", "ours", "alexnet-voc2007", quick=quick)
    made = Result(
        "Table 3", ("ours",), lambda _: [replace(part, measured="baselines", stand_in="digits")]
    )
    monkeypatch.setitem(catalogue_module.RESULTS, "imagenet", made)
    found = make_result("imagenet", Workshop(tmp_path, SCALES["quick"]))
    assert found.markdown().splitlines()[4].startswith("| digits | ")
    assert found.markdown().splitlines()[5] == "| PASCAL-VOC 2007, the paper | 70.8 |"
    assert "- digits: digits, linear; " in found.markdown()
    assert [*found.as_json()["rows"]] == ["digits"]
    monkeypatch.setitem(paper_module.TEST_EXAMPLES, "digits", (5794,))
    found = make_result("imagenet", Workshop(tmp_path, SCALES["quick"]))
    assert [*found.rows] == ["digits (360 of 5,794 test examples)"]


SAMPLE = Path(__file__).parents[2] / "examples" / "reproduce-quick"


@pytest.mark.parametrize("name", RESULTS)
def test_the_sample_has_every_figure_and_nothing_is_written_by_hand(name: str) -> None:
    place = SAMPLE / name
    kept = json.loads((place / "table.json").read_text(encoding="utf-8"))
    made = TypeAdapter(Reproduced).validate_python(kept)
    cells = [(part.row_at(QUICK), part.column) for part in RESULTS[name].parts(QUICK)]
    called = {row.partition(" (")[0]: row for row in made.rows}
    assert [made.rows[called[row]][column].mean is None for row, column in cells].count(True) == 0
    assert made.notes == []
    table = (place / "table.md").read_text(encoding="utf-8")
    assert table == made.markdown()
    assert table in (SAMPLE / "tables.md").read_text(encoding="utf-8")


def test_wrong_words_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("reproduce", "table-1") == 2
    assert run("reproduce", "steps", "--scale", "huge") == 2
    assert run("reproduce", "steps", "--threads", "0", "--output", str(tmp_path)) == 2
    assert "threads is 0" in capsys.readouterr().err
