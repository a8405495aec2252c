"""The search for settings: killed and continued, on held-out training data alone."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

import datadistill as dd
from datadistill.cli.distill import Distill
from datadistill.cli.main import main
from datadistill.cli.parsing import parse
from datadistill.errors import ConfigError, RunError
from datadistill.runs.store.yaml_files import read_config
from tests.processes import finished, python
from tests.runs.helpers import DATA, SETTINGS, arguments_with, finish

pytest.importorskip("optuna")

ROOT = Path(__file__).parents[2]
QUICK: dict[str, Any] = {
    **{name: value for name, value in SETTINGS.items() if name != "checkpoint_every"},
    **{"iterations": 4, "threads": 1, "checkpoint_every": 1},
}
SEARCH = ("learning_rate", "labels", "betas")
KILLED = """
import os, signal, sys
from pathlib import Path
from datadistill.runs.distillation import Distillation
from tests.runs.test_tuning import search_in
advance = Distillation.advance

def killed(self, state):
    trials = Path(sys.argv[1]) / "trials.jsonl"
    if state.outer_step == 2 and trials.exists() and len(trials.read_bytes().splitlines()) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return advance(self, state)

Distillation.advance = killed
search_in(Path(sys.argv[1]))
"""


def search_in(folder: Path, **settings: Any) -> dd.Tuned:
    given: dict[str, Any] = {**QUICK, "trials": 4, "search": SEARCH, **settings}
    return dd.tune(DATA, dd.models.Linear(), run=folder, **given)


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "trials.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tune")
    search_in(folder)
    return folder


def test_the_best_of_all_trials_is_written_as_a_recipe(whole: Path) -> None:
    found = search_in(whole)  # finished already
    assert len(found.trials) == len(rows(whole)) == 4
    assert found.trials[0].settings == {}
    assert all({*trial.settings} == {*SEARCH} for trial in found.trials[1:])
    assert len({str(trial.settings) for trial in found.trials}) == 4
    assert found.reached == max(trial.reached or 0 for trial in found.trials)
    best = next(trial for trial in found.trials if trial.reached == found.reached)
    config = read_config(found.recipe).mapping()
    assert config.items() >= best.settings.items()
    assert found.config.mapping() == config
    command = parse(["distill", str(found.recipe)])
    assert isinstance(command, Distill)
    assert command.config == found.config


def test_trials_are_judged_on_held_out_training_data_alone(whole: Path) -> None:
    for number, row in enumerate(rows(whole)):
        claim = dd.load(whole / "trials" / f"{number:03d}").claim
        assert claim is not None
        assert (claim.split, claim.mean) == ("validation", row["reached"])


def test_a_search_that_is_killed_continues_where_it_was(whole: Path, tmp_path: Path) -> None:
    process = python("-c", KILLED, tmp_path, cwd=ROOT)
    code, said = finish(process)
    assert code == -signal.SIGKILL, said
    assert len(rows(tmp_path)) == 2
    assert len([*(tmp_path / "trials" / "002" / "checkpoints").iterdir()]) > 0
    search_in(tmp_path)
    what = [(row["settings"], row["reached"]) for row in rows(tmp_path)]
    assert what == [(row["settings"], row["reached"]) for row in rows(whole)]
    assert (tmp_path / "best.yaml").read_bytes() == (whole / "best.yaml").read_bytes()


@pytest.mark.parametrize("budget", [{}, {"iterations": 10**6, "time_budget": 2.0}])
def test_a_trial_continues_that_was_killed_before_its_settings_were_written(
    tmp_path: Path, budget: dict[str, Any]
) -> None:
    found = search_in(tmp_path, trials=1, **budget)
    (tmp_path / "trials.jsonl").unlink()
    (tmp_path / "trials" / "000" / "config.yaml").unlink()  # which follows the first checkpoint
    again = search_in(tmp_path, trials=1, **budget)
    assert again.reached == found.reached


def test_a_search_has_a_time_budget(tmp_path: Path) -> None:
    found = search_in(tmp_path, iterations=10**6, trials=2, time_budget=1.0)
    for number in range(len(found.trials)):
        made = read_config(tmp_path / "trials" / f"{number:03d}" / "config.yaml")
        assert made.iterations < 10**6
    assert found.config.iterations == 10**6


def test_other_settings_do_not_continue_a_search(whole: Path) -> None:
    with pytest.raises(RunError, match="steps: 2 → 1"):
        search_in(whole, steps=1)
    with pytest.raises(ConfigError, match=r"outer_lrr cannot be searched. Did you mean 'outer_lr'"):
        search_in(whole, search=("outer_lrr",))
    with pytest.raises(ConfigError, match="A search needs validation data"):
        search_in(whole, validation=0)


def test_the_command_searches_from_a_recipe_and_flags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = arguments_with(tmp_path / "data.npz")[1:]  # not quiet
    mine = tmp_path / "mine.yaml"
    mine.write_text("labels: soft\n")
    assert main(["tune", str(mine), *words, "--iterations", "2", "--trials", "2"]) == 0
    folder = tmp_path / "runs" / "tune-mine"
    said = " ".join(capsys.readouterr().err.split())
    assert "Trial 1 of 2" in said
    assert "Use them: datadistill distill runs/tune-mine/best.yaml" in said
    best = read_config(folder / "best.yaml")
    assert (best.iterations, best.initialization) == (2, "fixed")
    assert len(rows(folder)) == 2


def test_where_optuna_is_missing_the_extra_is_named() -> None:
    program = "import sys; sys.modules['optuna'] = None\n"
    program += "from datadistill.cli.main import main; sys.exit(main(['tune', 'digits-fixed']))"
    done = finished("-c", program, env=dict(os.environ), cwd=ROOT)
    assert done.returncode == ConfigError.exit_code, sys.executable
    assert done.stderr == "error: optuna is not installed.\npip install 'datadistill[tune]'\n"
