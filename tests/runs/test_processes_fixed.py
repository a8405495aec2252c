"""A fixed initialization in several real processes, which divide the minibatch of real data."""

from pathlib import Path

import pytest
import torch

import datadistill as dd
from datadistill.cli.main import main
from datadistill.runs.store.folder import RunFolder
from datadistill.runs.store.metrics import read_metrics
from tests.helpers import relative_error
from tests.runs.helpers import arguments_with


def words_for(data: Path) -> list[str]:
    arguments_with(data)
    return [
        *("distill", "--data", str(data), "--initialization", "fixed", "--model", "linear"),
        *("--steps", "2", "--batch-size", "33", "--threads", "1", "--quiet"),
        *("--learning-rate", "0.3", "--validate-every", "5"),
    ]


@pytest.mark.usefixtures("forked_workers")
def test_two_processes_distil_for_one_network_as_one_does_and_resume_to_the_same_bits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = words_for(tmp_path / "data.npz")
    one, two, stopped = (tmp_path / name for name in ("one", "two", "stopped"))
    assert main([*words, "--iterations", "12", "--run", str(one), "--processes", "1"]) == 0
    assert main([*words, "--iterations", "12", "--run", str(two), "--processes", "2"]) == 0
    stop = ["--iterations", "7", "--decay-every", "12"]  # the schedule of the whole
    assert main([*words, *stop, "--run", str(stopped), "--processes", "2"]) == 0
    assert main(["resume", str(stopped), "--iterations", "12"]) == 0
    left, right, again = (dd.load(RunFolder(run).distilled) for run in (one, two, stopped))
    assert relative_error(right.inputs, left.inputs) < 1e-4
    assert right.claim == left.claim
    assert torch.equal(again.inputs, right.inputs)
    assert torch.equal(again.learning_rates, right.learning_rates)
    rows = [read_metrics(RunFolder(run).metrics) for run in (two, stopped)]
    assert [row.loss for row in rows[0]] == [row.loss for row in rows[1]]


@pytest.mark.usefixtures("forked_workers")
def test_a_network_that_mixes_examples_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = words_for(tmp_path / "data.npz")
    code = tmp_path / "mixing.py"
    code.write_text(
        "from torch import nn\n\n"
        "class Mixing(nn.Sequential):\n"
        "    def __init__(self):\n"
        "        norm = nn.BatchNorm1d(64, track_running_stats=False)\n"
        "        super().__init__(nn.Flatten(), nn.Linear(98, 64), norm, nn.Linear(64, 10))\n"
    )
    words[words.index("linear")] = f"{code}:Mixing"
    run = ["--run", str(tmp_path / "run"), "--processes", "2"]
    assert main([*words, "--iterations", "2", *run]) == 2
    told = capsys.readouterr().err
    assert "several processes cannot divide the minibatch of one network" in told
    assert "Leave processes out, and use threads." in told
