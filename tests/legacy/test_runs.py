"""Run folders of an earlier version: resumed, extended, begun again, evaluated, verified."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import datadistill as dd
from tests.processes import finished

from .helpers import (
    EXPECTED,
    NAMED_AGAIN,
    RUNS,
    assert_reaches_what_the_old_version_reached,
    copy_of,
    datadistill,
)

STOPPED = sorted(EXPECTED["runs"])
OUTER_STEPS = 40

pytestmark = pytest.mark.usefixtures("same_processor")


def rows_of(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def steps_in(run: Path) -> list[int]:
    return sorted(int(path.stem[5:]) for path in (run / "checkpoints").iterdir())


def verify_words(name: str) -> list[str]:
    model = ["--model", "modules.py:Small", "--model-args", "width=3"]
    return {"poisoning": NAMED_AGAIN["poisoning"], "own": model}.get(name, [])


def test_all_were_stopped_in_the_middle() -> None:
    assert STOPPED == ["fixed", "own", "poisoning", "random", "weights"]
    for name in STOPPED:
        assert len(rows_of(RUNS / name)) == EXPECTED["runs"][name]["stopped_at"] < OUTER_STEPS
        assert not (RUNS / name / "distilled.safetensors").exists()
    # Killed at once: there are outer steps in the log that no checkpoint has.
    assert [name for name in STOPPED if steps_in(RUNS / name)[-1] < len(rows_of(RUNS / name))] == [
        "random",
        "weights",
    ]


@pytest.mark.parametrize("name", STOPPED)
def test_the_command_goes_on_to_the_same_end(name: str, here: Path) -> None:
    run, saved = copy_of(name, here), steps_in(RUNS / name)[-1]
    assert datadistill("resume", run, "--quiet", *NAMED_AGAIN.get(name, [])) == 0
    made = dd.load(run / "distilled.safetensors")
    assert_reaches_what_the_old_version_reached(made, name)
    rows = rows_of(run)
    assert [row["outer_step"] for row in rows] == [*range(1, OUTER_STEPS + 1)]
    assert rows[:saved] == rows_of(RUNS / name)[:saved]
    assert datadistill("verify", run, "--quiet", *verify_words(name)) == 0


@pytest.mark.parametrize("name", ["fixed", "random"])
def test_python_goes_on_to_the_same_end(name: str, here: Path) -> None:
    begin: list[int] = []
    made = dd.resume(copy_of(name, here), progress=lambda told: begin.append(told.done))
    assert begin[0] == steps_in(RUNS / name)[-1] + 1
    assert_reaches_what_the_old_version_reached(made, name)


def test_another_process_goes_on_too(here: Path) -> None:
    words = ["resume", str(copy_of("own", here)), "--quiet", *NAMED_AGAIN["own"]]
    done = finished("-m", "datadistill", *words)
    assert done.returncode == 0, done.stderr
    made = dd.load(here / "own" / "distilled.safetensors")
    assert_reaches_what_the_old_version_reached(made, "own")


def test_code_that_a_run_names_is_not_run_because_a_file_says_so(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = copy_of("own", here)
    assert datadistill("resume", run) == 2
    assert "--model modules.py:Small" in capsys.readouterr().err
    assert datadistill("resume", run, "--model", "modules.py:Small") == 2
    assert "--objective modules.py:smooth" in capsys.readouterr().err


def test_an_older_checkpoint_serves_where_the_newest_is_damaged(here: Path) -> None:
    run = copy_of("fixed", here)
    newest = run / "checkpoints" / f"step-{steps_in(run)[-1]:08d}.safetensors"
    newest.write_bytes(newest.read_bytes()[:-1])
    assert_reaches_what_the_old_version_reached(dd.resume(run), "fixed")


def test_a_lost_configuration_comes_back_from_the_checkpoint(here: Path) -> None:
    run = copy_of("random", here)
    (run / "config.yaml").unlink()
    assert_reaches_what_the_old_version_reached(dd.resume(run), "random")
    assert (run / "config.yaml").exists()


def test_a_changed_configuration_is_refused(here: Path) -> None:
    run = copy_of("fixed", here)
    config = run / "config.yaml"
    config.write_text(config.read_text().replace("outer_lr: 0.05", "outer_lr: 0.06"))
    with pytest.raises(dd.DataDistillError, match=r"outer_lr: 0\.05 → 0\.06"):
        dd.resume(run)


@pytest.mark.parametrize("name", STOPPED)
def test_its_configuration_begins_the_same_run_again(name: str, here: Path) -> None:
    words = ["--run", "again", "--quiet", *NAMED_AGAIN.get(name, [])]
    assert datadistill("distill", RUNS / name / "config.yaml", *words) == 0
    made = dd.load(here / "again" / "distilled.safetensors")
    assert_reaches_what_the_old_version_reached(made, name)


def test_a_finished_run_is_finished(here: Path) -> None:
    run = copy_of("finished", here)
    names = ("*.safetensors", "*.json*", "checkpoints/*")
    before = {path: path.read_bytes() for name in names for path in run.glob(name)}
    assert len(before) == 7
    made = dd.resume(run)
    assert {path: path.read_bytes() for path in before} == before
    assert made.claim
    assert made.claim.mean == EXPECTED["finished"]["claim"]
    assert torch.equal(made.inputs, dd.load(run / "distilled.safetensors").inputs)
    for path in ("distilled", "best", "last"):
        assert dd.load(run / f"{path}.safetensors").claim
    assert datadistill("verify", run, "--quiet") == 0


def test_more_outer_steps_leave_the_baselines(here: Path) -> None:
    run = copy_of("finished", here)
    baselines = json.loads((run / "results.json").read_text())["baselines"]
    made = dd.resume(run, iterations=OUTER_STEPS + 5)
    assert len(rows_of(run)) == OUTER_STEPS + 5
    assert made.claim
    results = json.loads((run / "results.json").read_text())
    assert results["run"]["outer_steps"] == OUTER_STEPS + 5
    assert results["baselines"] == baselines


def test_finished_baselines_are_not_computed_again(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = copy_of("finished", here)
    before = json.loads((run / "results.json").read_text())
    assert datadistill("evaluate", run, "--baselines", "--quiet") == 0
    before["baselines"]["table"]["train_examples"] = 1437  # new since then
    assert json.loads((run / "results.json").read_text()) == before
    told = capsys.readouterr().out
    for name in before["baselines"]["table"]["rows"]:
        assert name in told
