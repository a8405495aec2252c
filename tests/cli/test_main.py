"""The command line as a user types it: real files, real exit codes."""

import importlib.util
import json
import os
import time
from pathlib import Path

import pytest
import safetensors.torch
import torch

import datadistill as dd
from datadistill.bars import Lines
from datadistill.cli.distill import FEW_OUTER_STEPS
from datadistill.cli.main import main
from datadistill.progress import Progress
from datadistill.runs.store.checkpoint import newest
from tests.cli.helpers import run
from tests.processes import finished

QUICK = ["--iterations", "2", "--batch-size", "32", "--model", "linear"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder as the working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.usefixtures("pictures")
def test_distil_train_and_evaluate(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("distill", *QUICK, "--initialization", "fixed", "--steps", "2") == 0
    output = capsys.readouterr().out
    assert "% on digits test" in output
    assert names(here) == ["runs"]
    assert names(here / "runs" / "digits-linear-fixed") == [
        ".lock",
        "best.safetensors",
        "checkpoints",
        "config.yaml",
        "distilled.png",
        "distilled.safetensors",
        "last.safetensors",
        "metrics.jsonl",
        "report.html",
        "results.json",
    ]
    artefact = "runs/digits-linear-fixed/distilled.safetensors"
    claim = dd.load(artefact).claim
    assert claim is not None
    assert claim.split == "test"

    assert run("evaluate", artefact, "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert result["mean"] == claim.mean
    assert result["values"] == [claim.mean]
    assert (result["data"], result["split"], result["examples"]) == ("digits", "test", 360)
    assert run("evaluate", artefact) == 0
    assert capsys.readouterr().out.strip() == str(claim)

    assert run("train", artefact) == 0
    trained = artefact.replace(".safetensors", "-trained.safetensors")
    assert trained in capsys.readouterr().out
    module = dd.models.Linear()
    module.load_state_dict(safetensors.torch.load_file(trained))
    inputs, labels = dd.data.load("digits")[1].batch(
        slice(None), torch.device("cpu"), torch.float32
    )
    assert float((module(inputs).argmax(1) == labels).double().mean()) == claim.mean


def test_random_initializations_report_a_deviation(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [*QUICK, "--networks", "2", "--test-networks", "5", "--run", "x"]
    assert run("distill", *arguments) == 0
    assert "over 5 networks" in capsys.readouterr().out
    assert run("evaluate", "x/distilled.safetensors", "--networks", "3", "--split", "train") == 0
    assert "on digits train over 3 networks" in capsys.readouterr().out


def test_an_own_network_from_a_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "my_net.py").write_text(
        "import torch.nn as nn\n\n\n"
        "class Mine(nn.Sequential):\n"
        "    def __init__(self):\n"
        "        super().__init__(nn.Flatten(), nn.Linear(784, 10))\n"
    )
    fixed = ["--initialization", "fixed", "--iterations", "1", "--run", "a"]
    assert run("distill", "--model", "my_net.py:Mine", *fixed) == 0
    assert run("evaluate", "a/distilled.safetensors") == 2
    assert "my_net:Mine, which is not built in" in capsys.readouterr().err
    assert run("evaluate", "a/distilled.safetensors", "--model", "my_net.py:Mine") == 0
    assert run("train", "a/distilled.safetensors", "--model", "my_net.py:Mine") == 0


def test_the_real_mnist(
    here: Path, mnist: object, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--data", "mnist", "--data-dir", str(data_dir), *QUICK]
    assert run("distill", *arguments, "--initialization", "fixed") == 0
    assert "% on mnist test" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "mnsit"], "Did you mean 'mnist'?"),
        (["--model", "lenett"], "Did you mean 'lenet'?"),
        (["--model", "nowhere.at:All"], "nowhere"),
        (["--model", "raises.py:Model"], "boom"),
        (["--model", "small.py:Model"], "inputs of shape"),
        (["--steps", "0"], "steps is 0"),
        (["--epochs", "0"], "epochs is 0"),
        (["--iterations", "0"], "iterations is 0"),
        (["--learning-rate", "-1"], "learning_rate is -1"),
        (["--window", "3"], "window has no meaning"),
        (["--adjoint", "truncated"], "needs window"),
        (["--networks", "3", "--initialization", "fixed"], "one network"),
        (["--validation", "2"], "validation is 2"),
        (["--data", "mnist", "--data-dir", "nowhere"], "nowhere/mnist"),
    ],
)
def test_bad_input_ends_with_code_2_two_lines_and_no_file(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    (here / "raises.py").write_text(
        "import torch.nn as nn\n\n\nclass Model(nn.Linear):\n"
        "    def __init__(self):\n        super().__init__(1, 1)\n"
        "    def forward(self, x):\n        raise ValueError('boom')\n"
    )
    (here / "small.py").write_text(
        "import torch.nn as nn\n\n\nclass Model(nn.Linear):\n"
        "    def __init__(self):\n        super().__init__(3, 2)\n"
    )
    before = names(here)
    quick = {"--iterations": "1", "--model": "linear"}
    base = [
        part for flag, value in quick.items() if flag not in arguments for part in (flag, value)
    ]
    assert run("distill", *base, *arguments, "--run", "made") == 2
    captured = capsys.readouterr()
    error = captured.err[captured.err.index("error: ") :]  # after what it was going to do
    assert message in error
    assert "Traceback" not in captured.err
    assert len(error.strip().splitlines()) == 2
    assert captured.out == ""
    assert [name for name in names(here) if name != "__pycache__"] == before


@pytest.mark.parametrize(
    "arguments",
    [["distil"], ["distill", "--stepz", "3"], ["evaluate"], ["distill", "--steps", "three"], []],
)
def test_words_the_command_line_does_not_know_end_with_code_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert run(*arguments) == 2
    assert capsys.readouterr().err


def test_a_run_is_never_overwritten(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("distill", *QUICK, "--initialization", "fixed") == 0
    assert run("distill", *QUICK, "--initialization", "fixed", "--seed", "5") == 0
    assert names(here / "runs") == ["digits-linear-fixed", "digits-linear-fixed-2"]
    first = here / "runs" / "digits-linear-fixed"
    before = {path.name: path.read_bytes() for path in first.glob("*.*")}
    assert run("distill", *QUICK, "--run", str(first)) == 1
    error = capsys.readouterr().err
    assert "There is a run in" in error
    assert "Continue it with --resume" in error
    assert {path.name: path.read_bytes() for path in first.glob("*.*")} == before


def test_a_place_that_cannot_be_written_is_told_before_the_work(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "file").write_text("")
    assert run("distill", *QUICK, "--iterations", "1000000", "--run", "file/x") == 1
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["train", "evaluate"])
def test_a_damaged_artefact_ends_with_code_2(
    here: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    (here / "bad.safetensors").write_bytes(b"not an artefact")
    assert run(command, "bad.safetensors") == 2
    assert "not a safetensors file" in capsys.readouterr().err
    assert run(command, "none.safetensors") == 2
    assert "There is no file" in capsys.readouterr().err
    assert names(here) == ["bad.safetensors"]


def test_divergence_ends_with_code_1_the_remedy_and_a_finite_checkpoint(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--learning-rate", "1e20", "--batch-size", "32", "--checkpoint-every", "1"]
    assert run("distill", *arguments, "--run", "r") == 1
    error = capsys.readouterr().err
    assert "not finite in 5 outer steps in a row, up to outer step 5" in error
    assert "learning rates up to 1e+20" in error
    assert "Lower learning_rate" in error
    checkpoint, _ = newest(here / "r" / "checkpoints")
    assert checkpoint.state.outer_step == 4  # those before the last straw
    assert checkpoint.state.distiller.rejected == 4
    state = checkpoint.state.distiller
    for tree in (state.parameters, state.adam.first, state.adam.second):
        assert all(torch.isfinite(tensor).all() for tensor in tree.values())
    assert not (here / "r" / "distilled.safetensors").exists()


def test_the_traceback_comes_with_debug_only(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("evaluate", "none.safetensors", "--debug") == 2
    assert "Traceback" in capsys.readouterr().err


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out.strip() == f"datadistill {dd.__version__}"
    for command in ("", "quickstart", "distill", "resume", "train", "evaluate", "recipes", "data"):
        assert run(*command.split(), "--help") == 0
    assert "Batches of distilled data" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["distill --help", "recipes --help", "--version", "data"])
def test_a_reader_that_goes_away_is_no_error(command: str) -> None:
    read, write = os.pipe()
    os.close(read)  # long before Python has started
    kept = {name: v for name, v in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = finished("-m", "datadistill", *command.split(), stdout=write, env=kept)
    os.close(write)
    assert done.stderr == ""
    assert done.returncode == 1


def test_python_m_datadistill_works_and_pipes_stay_clean(here: Path) -> None:
    command = ["-m", "datadistill", "distill", *QUICK, "--initialization", "fixed"]
    command += ["--iterations", str(FEW_OUTER_STEPS + 1)]
    done = finished(*command)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].endswith("% on digits test")
    said = done.stderr.splitlines()
    assert said == [
        "Distilling 1,437 examples of digits for linear, fixed initialization: steps 1, epochs 3.",
        *said[1:-4],
        "Kept the last.",
        said[-3],
        "More on that page: datadistill report runs/digits-linear-fixed",
        "Use them: datadistill train runs/digits-linear-fixed",
    ]
    assert said[1].startswith("Computed by: ")
    assert said[2].startswith("Measured here: ")
    assert said[-3].startswith("Stored bytes: ")
    quiet = finished(*command, "--quiet")
    assert (quiet.returncode, quiet.stderr) == (0, "")


def test_a_run_of_a_few_outer_steps_is_not_kept_waiting_by_a_measurement_of_its_cost(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("distill", *QUICK, "--initialization", "fixed", "--threads", "1") == 0
    assert "Measured here" not in capsys.readouterr().err


def test_a_mistyped_command_gets_one_line_with_the_right_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["distil", "digits-fixed"]) == 2
    assert capsys.readouterr().err == (
        "error: There is no command 'distil'. Did you mean 'distill'?\n"
    )


def test_a_missing_extra_is_refused_before_a_folder_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", {}.get)  # as if nothing were installed
    assert main(["distill", "digits-fixed", "--tensorboard"]) == 2
    assert "TensorBoard is not installed." in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_existing_run_is_continued_or_replaced_as_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["distill", "--model", "linear", "--initialization", "fixed", "--threads", "1"]
    words += ["--iterations", "3", "--run", "run", "--quiet"]
    assert main(words) == 0
    first = (tmp_path / "run" / "distilled.safetensors").read_bytes()
    assert main(words) == 1
    assert "Continue it with --resume, replace it with --overwrite" in capsys.readouterr().err
    (tmp_path / "run" / "mine.txt").write_text("mine")
    assert main([*words, "--resume"]) == 0
    assert (tmp_path / "run" / "distilled.safetensors").read_bytes() == first
    assert main([*words, "--resume", "--seed", "1"]) == 2
    assert "seed: 0 → 1" in capsys.readouterr().err
    assert main([*words, "--overwrite", "--seed", "1"]) == 0
    assert (tmp_path / "run" / "distilled.safetensors").read_bytes() != first
    assert (tmp_path / "run" / "mine.txt").read_text() == "mine"
    assert main([*words, "--overwrite", "--resume"]) == 2


def test_without_a_terminal_a_line_now_and_then_tells_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, said = 0.0, list[str]()
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    show = Lines(said.append)
    for done in range(300):
        clock = float(done)
        show(Progress("distilling", done, 300, {"loss": 0.5, "held-out accuracy": 0.831}))
    assert said == [
        f"distilling: {done} of 300, about {left} left, loss 0.500, held-out 83.1 %"
        for done, left in [(60, "4 min"), (120, "3 min"), (180, "2 min"), (240, "60 s")]
    ]
