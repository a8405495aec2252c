"""``datadistill evaluate`` as a user types it."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import datadistill as dd
from tests.cli import helpers

MINE = """
from torch import nn

class Mine(nn.Sequential):
    def __init__(self, width=4):
        super().__init__(nn.Flatten(), nn.Linear(784, width), nn.Tanh(), nn.Linear(width, 10))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an artefact, a run folder that holds the same, and a user's module."""
    folder = tmp_path_factory.mktemp("evaluate")
    train, test = dd.data.load("digits")
    made = dd.distill(train, dd.models.MLP(hidden=8), steps=2, epochs=1, iterations=3)
    made = made.with_claim(dd.evaluate(made, test, networks=5).claim())
    made.save(folder / "random.safetensors")
    fixed = dd.distill(train, dd.models.Linear(), initialization=dd.FixedInit(), iterations=3)
    fixed.save(folder / "fixed.safetensors")
    (folder / "run").mkdir()
    made.save(folder / "run" / "distilled.safetensors")
    (folder / "empty").mkdir()
    (folder / "evaluated_net.py").write_text(MINE)
    return folder


@pytest.fixture(autouse=True)
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def run(*arguments: str) -> int:
    return helpers.run("evaluate", *arguments)


def result(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run(*arguments, "--json") == 0
    return json.loads(capsys.readouterr().out)


def test_a_run_folder_stands_for_its_artefact(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("run", "--networks", "5") == 0
    claim = dd.load("random.safetensors").claim
    assert capsys.readouterr().out.strip() == str(claim)
    assert run("empty") == 2
    assert "empty holds no distilled.safetensors" in capsys.readouterr().err.replace("\n", " ")


def test_threads_can_be_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    before = torch.get_num_threads()
    try:
        assert run("fixed.safetensors") == 0
        assert f"For a bit-identical result, use --threads {before}.\n" in capsys.readouterr().err
        assert run("fixed.safetensors", "--threads", "2") == 0
        assert torch.get_num_threads() == 2
        assert "bit-identical" not in capsys.readouterr().err
    finally:
        torch.set_num_threads(before)
    assert run("fixed.safetensors", "--threads", "0") == 2
    assert "Set threads to at least 1." in capsys.readouterr().err


def test_json_has_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    found = result(capsys, "random.safetensors", "--networks", "3", "--seed", "2")
    expected = dd.evaluate("random.safetensors", dd.data.load("digits")[1], networks=3, seed=2)
    assert found["values"] == [*expected.values]
    assert found["losses"] == [*expected.losses]
    assert (found["mean"], found["std"]) == (expected.mean, expected.std)
    assert found["loss"] == expected.loss
    assert found["seed"] == 2
    assert [one["mean"] for one in found["by_class"]] == [one.mean for one in expected.by_class]
    assert [one["name"] for one in found["by_class"]] == [str(digit) for digit in range(10)]
    assert "curve" not in found


def test_the_figure_of_every_class_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("random.safetensors", "--networks", "2", "--per-class") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["class", "examples", "accuracy"]
    assert [line.split()[0] for line in lines[2:]] == [str(digit) for digit in range(10)]
    assert all(line.rstrip().endswith("%") and "±" in line for line in lines[2:])


def test_the_curve_has_a_row_for_every_update(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("random.safetensors", "--networks", "2", "--curve") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["updates", "epoch", "step", "accuracy", "loss"]
    assert [line.split()[0] for line in lines[2:]] == ["0", "1", "2"]
    assert lines[4].split()[:3] == ["2", "1", "2"]
    found = result(capsys, "random.safetensors", "--networks", "2", "--curve")
    assert [one["updates"] for one in found["curve"]] == [0, 1, 2]
    assert found["curve"][-1]["values"] == found["values"]


@pytest.mark.parametrize("memory", ["1", "64"])
def test_the_bound_of_memory_changes_no_figure(
    capsys: pytest.CaptureFixture[str], memory: str
) -> None:
    every = result(capsys, "random.safetensors", "--networks", "5")
    bounded = result(capsys, "random.safetensors", "--networks", "5", "--memory", memory)
    assert bounded["losses"] == pytest.approx(every["losses"], rel=1e-4)


def test_another_architecture_is_trained_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("random.safetensors", "--networks", "2", "--model", "lenet") == 0
    assert "(lenet, from data distilled for mlp)" in capsys.readouterr().out
    assert run("fixed.safetensors", "--networks", "2", "--model", "evaluated_net.py:Mine") == 0
    assert "(Mine, from data distilled for linear; random" in capsys.readouterr().out
    arguments = ["--model", "mlp", "--model-args", "hidden=8"]
    same = result(capsys, "random.safetensors", "--networks", "2", *arguments)
    assert same["note"] == ""
    assert same["values"] == result(capsys, "random.safetensors", "--networks", "2")["values"]
    brackets = ["--model", "mlp(hidden=8)", "--networks", "2"]
    assert result(capsys, "random.safetensors", *brackets)["values"] == same["values"]


def test_data_for_one_network_are_tried_on_random_ones(capsys: pytest.CaptureFixture[str]) -> None:
    found = result(capsys, "fixed.safetensors", "--initialization", "random", "--networks", "3")
    assert found["note"] == "random initialization, from data distilled for a fixed one"
    assert len(found["values"]) == 3


def test_ordinary_training_uses_no_schedule(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--ordinary", "--optimizer", "adam", "--epochs", "2", "--batch-size", "4"]
    found = result(capsys, "random.safetensors", "--networks", "2", *flags)
    assert found["note"] == "ordinary training: adam, lr 0.001, 2 epochs, minibatches of 4"
    assert found["updates"] == 10
    assert run("random.safetensors", "--networks", "2", "--ordinary", "--lr", "0.1") == 0
    assert "ordinary training: sgd, lr 0.1, 30 epochs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--lr", "0.1"], "--lr needs --ordinary"),
        (["--batch-size", "3"], "--batch-size needs --ordinary"),
        (["--ordinary", "--curve"], "--curve cannot be combined with --ordinary"),
        (["--ordinary", "--epochs", "0"], "epochs is 0"),
        (["--initialization", "random", "--baselines"], "cannot be combined with --baselines"),
        (["--initialization", "fixed"], "--initialization is 'fixed'"),
        (["--memory", "0"], "memory is 0"),
        (["--networks", "0"], "networks is 0"),
        (["--model", "lenett"], "no network called 'lenett'"),
    ],
)
def test_flags_that_make_no_sense_are_refused(
    capsys: pytest.CaptureFixture[str], flags: list[str], message: str
) -> None:
    assert run("random.safetensors", *flags) == 2
    assert message in capsys.readouterr().err.replace("\n", " ")
