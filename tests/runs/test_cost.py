"""What a run will cost is told before it starts, and a time budget is kept."""

import re
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import datadistill as dd
from datadistill.cli.main import main
from datadistill.core.update import GradientDescent
from datadistill.durations import parse_time, time_text
from datadistill.errors import ConfigError
from datadistill.runs.config import config_from
from datadistill.runs.planning.budget import TimeBudget
from datadistill.runs.planning.cost import Cost, measure_cost
from datadistill.runs.preparation import prepare
from datadistill.runs.run import Run
from datadistill.runs.store.folder import RunFolder
from datadistill.runs.store.metrics import read_metrics
from datadistill.runs.store.yaml_files import read_config
from tests.processes import finished
from tests.runs.helpers import DATA, IMAGES, LABELS, SETTINGS, TEST, stop_after

COST_LINE = (
    r"Measured here: .+ per outer step; (.+) outer steps with tests take about .+; "
    r"peak memory .+ GiB\."
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("30m", 1800), ("1h30m", 5400), ("2d", 172800), ("1.5h", 5400), ("1h1s", 3601)],
)
def test_times_are_written_as_people_write_them(text: str, seconds: float) -> None:
    assert parse_time(text) == seconds


@pytest.mark.parametrize("text", ["", "30", "m", "30 minutes", "-5m", "0s", "1e3s", "nan"])
def test_what_is_no_time_is_an_error(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a duration"):
        parse_time(text)


def test_times_are_told_in_fitting_units() -> None:
    told = [time_text(t) for t in (0.0123, 3.21, 45, 100, 3600, 7300, 200_000)]
    assert told == ["12 ms", "3.2 s", "45 s", "2 min", "60 min", "2 h 2 min", "2 d 7 h"]


def test_the_cost_is_that_of_the_run_itself() -> None:
    config = config_from({"model": "linear", **SETTINGS, "iterations": 60})
    distillation = prepare(config, DATA, dd.models.Linear())
    test = dd.LabelledData(*TEST, split="test")
    cost = measure_cost(distillation, test)
    state, begin = distillation.start(), time.perf_counter()
    for _ in range(60):
        state, _row = distillation.advance(state)
    took = time.perf_counter() - begin
    # Other load comes and goes; a wrong unit or a forgotten factor is far more than this.
    assert took / 5 < cost.total(60, 3) < took * 5
    assert cost.memory > 2**26


def test_the_cost_of_a_test_does_not_depend_on_how_even_training_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds, update = 0.0, GradientDescent.update

    def slower(*arguments: Any) -> Any:  # and slower, as if other work began on the machine
        nonlocal seconds
        seconds += 0.001
        time.sleep(seconds)
        return update(*arguments)

    monkeypatch.setattr(GradientDescent, "update", slower)
    config = config_from({"model": "linear", **SETTINGS})
    distillation = prepare(config, DATA, dd.models.Linear())
    test = dd.LabelledData(IMAGES.repeat(100, 1, 1, 1), LABELS.repeat(100), split="test")
    cost, updates = measure_cost(distillation, test), config.steps * config.epochs
    # It takes milliseconds to test a linear network on 6,000 examples.
    assert cost.test < SETTINGS["test_networks"] * (updates * seconds + 0.5)


def test_iterations_that_fit_into_a_time_leave_room_for_the_tests() -> None:
    cost = Cost(outer_step=1.0, validation=2.0, test=10.0, memory=0)
    assert cost.iterations_within(100) == 95 - 21 * 2 - 10
    assert cost.iterations_within(50) == 0


def test_a_dry_run_tells_the_cost_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["distill", "--model", "linear", "--iterations", "12345", "--dry-run"]) == 0
    found = re.search(COST_LINE, capsys.readouterr().err)
    assert found
    assert found[1] == "12,345"
    assert list(tmp_path.iterdir()) == []


def test_a_time_budget_plans_the_outer_steps_and_scales_the_schedule(tmp_path: Path) -> None:
    words = ["--model", "linear", "--initialization", "fixed", "--iterations", "1000000"]
    words += ["--decay-every", "100000", "--time-budget", "4s", "--run", "run"]
    begin = time.monotonic()
    done = finished("-m", "datadistill", "distill", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    took = time.monotonic() - begin
    assert took < 60, "start-up and the picture come on top, but not a million outer steps"
    config = read_config(tmp_path / "run" / "config.yaml")
    planned = re.search(COST_LINE, done.stderr)
    assert planned
    steps = int(planned[1].replace(",", ""))
    assert steps < 1_000_000
    assert config.decay_every == max(1, round(100_000 * (steps / 1_000_000)))
    assert "The time budget ends before --iterations 1000000 does." in done.stderr
    assert len(read_metrics(tmp_path / "run" / "metrics.jsonl")) == config.iterations
    made = dd.load(tmp_path / "run" / "distilled.safetensors")
    assert made.header.configuration["outer_step"] == config.iterations


def test_a_run_ends_well_when_its_time_is_up_before_its_outer_steps(tmp_path: Path) -> None:
    config = config_from({"model": "linear", **SETTINGS, "iterations": 1_000_000})
    distillation = prepare(config, DATA, dd.models.Linear())
    said: list[str] = []
    test = dd.LabelledData(*TEST, split="test")
    budget = TimeBudget(time.monotonic() + 0.5)
    made = Run(distillation, RunFolder(tmp_path), test, budget, tell=said.append).go()
    reached = made.header.configuration["outer_step"]
    assert 0 < reached < 1_000_000
    assert f"The time budget ended after {reached:,} outer steps." in said
    assert made.claim is not None
    assert made.claim.split == "test"
    # The configuration says what was done: the same again gives the same.
    again = read_config(tmp_path / "config.yaml")
    assert again.iterations == reached
    same = prepare(again, DATA, dd.models.Linear())
    Run(same, RunFolder(tmp_path / "again"), test).go()
    first, second = (p / "distilled.safetensors" for p in (tmp_path, tmp_path / "again"))
    assert first.read_bytes() == second.read_bytes()


def test_the_last_measurement_counts_where_the_time_ends_between_two(tmp_path: Path) -> None:
    settings = SETTINGS | {"iterations": 1_000_000, "validate_every": 1_000_000}
    config = config_from({"model": "linear", **settings})
    distillation = prepare(config, DATA, dd.models.Linear())
    Run(distillation, RunFolder(tmp_path), budget=TimeBudget(time.monotonic() + 0.2)).go()
    best, last = (dd.load(tmp_path / f"{name}.safetensors") for name in ("best", "last"))
    assert best.claim == last.claim
    assert best.claim is not None


def test_the_decay_follows_the_time_that_is_left_when_the_machine_slows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = SETTINGS | {"iterations": 400, "validate_every": 10, "outer_schedule": "cosine"}
    config = config_from({"model": "linear", **settings})
    distillation = prepare(config, DATA, dd.models.Linear())
    said: list[str] = []

    def slow_down(told: dd.Progress) -> None:
        if told.stage == "distilling":
            clock.now += 0.02 if told.done > 20 else 0.002

    clock = SimpleNamespace(now=0.0)
    clock.monotonic = lambda: clock.now  # real time would depend on other load
    monkeypatch.setattr("datadistill.runs.planning.budget.time", clock)
    budget, folder = TimeBudget(2.0, at_most=400), RunFolder(tmp_path / "run")
    Run(distillation, folder, None, budget, said.append, progress=slow_down).go()
    rows, ended = read_metrics(folder.metrics), read_config(folder.config)
    assert len(rows) == ended.iterations == 118
    assert any("The run is slower than planned" in text for text in said)
    assert rows[-1].outer_lr < 0.1 * rows[0].outer_lr
    # The configuration records the plans: the same again gives the same.
    again = Run(prepare(ended, DATA, dd.models.Linear()), RunFolder(tmp_path / "b"))
    again.go()
    assert again.folder.distilled.read_bytes() == folder.distilled.read_bytes()
    # So does a run that is resumed from any of its checkpoints.
    stopped = RunFolder(tmp_path / "c")
    with pytest.raises(KeyboardInterrupt):
        Run(
            prepare(ended, DATA, dd.models.Linear()),
            stopped,
            progress=stop_after(ended.iterations - 3)["progress"],
        ).go()
    Run(prepare(ended, DATA, dd.models.Linear()), stopped).go()
    assert stopped.distilled.read_bytes() == folder.distilled.read_bytes()


def test_a_plan_changes_only_if_the_pace_does(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    budget = TimeBudget(until=100.0, at_most=150)
    assert budget.iterations(0, planned=100) == 100  # no pace is known yet
    clock = 10.0
    assert budget.iterations(10, planned=100) == 100  # one a second, as planned
    clock = 30.0
    assert budget.iterations(20, planned=100) == 20 + 35  # one in two seconds
    clock = 31.0
    assert budget.iterations(30, planned=55) == 150  # ten a second, but no more than asked for
    clock = 101.0
    assert budget.is_up()
    assert budget.iterations(31, planned=150) == 32


def test_iterations_that_are_named_end_before_a_longer_time_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--model", "linear", "--initialization", "fixed", "--iterations=3", "--run", "run"]
    assert main(["distill", *words, "--time-budget", "1h"]) == 0
    assert "--iterations 3 ends before the time budget does." in capsys.readouterr().err
    assert read_config(tmp_path / "run" / "config.yaml").iterations == 3


def test_a_budget_too_short_for_one_outer_step_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["distill", "--model", "linear", "--time-budget", "0.001s"]) == 2
    assert "Choose a longer --time-budget" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_scaled_configuration_is_still_complete() -> None:
    config = replace(config_from({"iterations": 100}), decay_every=10, validate_every=5)
    assert config.scaled(50).mapping().keys() == config.mapping().keys()
