"""An experiment is loaded once, and so is the checkpoint of a run that is resumed."""

import shutil
from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
import torch

import datadistill as dd
from datadistill import models
from datadistill.cli.main import main
from datadistill.errors import ConfigError, RunError
from datadistill.lock import locked
from datadistill.runs.config import RunConfig
from datadistill.runs.experiment import CODE_SETTINGS, check_no_code, names_code
from datadistill.runs.store import checkpoint
from datadistill.runs.store.folder import RunFolder
from tests.runs.helpers import contents, go, stop_after

WORDS = [
    *("distill", "--model", "linear", "--initialization", "fixed", "--iterations", "4"),
    *("--batch-size", "32", "--steps", "1", "--checkpoint-every", "2"),
]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts how often data, networks and checkpoints are really read or made."""
    counted: Counter[str] = Counter()

    def count(place: Any, name: str, what: str) -> None:
        real: Callable[..., Any] = getattr(place, name)

        def counting(*arguments: Any, **named: Any) -> Any:
            counted[what] += 1
            return real(*arguments, **named)

        monkeypatch.setattr(place, name, counting)

    count(dd.data, "load", "data")
    count(models, "find_for", "network")
    count(checkpoint, "read_container", "checkpoint")
    return counted


@pytest.fixture
def two_threads() -> Generator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_a_division_is_measured_on_the_data_that_the_run_uses(
    tmp_path: Path, reads: Counter[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*WORDS, "--run", str(tmp_path / "run")]) == 0
    assert "Measured here: 2 threads: " in capsys.readouterr().err
    assert reads == {"data": 1, "network": 1}


def test_a_division_that_is_given_loads_once_too(
    tmp_path: Path, reads: Counter[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*WORDS, "--run", str(tmp_path / "run"), "--threads", "1"]) == 0
    assert "Measured here: 1 thread" not in capsys.readouterr().err
    assert reads == {"data": 1, "network": 1}


@pytest.mark.parametrize("with_config", [True, False])
@pytest.mark.parametrize("how", ["command", "python"])
def test_a_resumed_run_reads_data_and_checkpoint_once(
    tmp_path: Path, reads: Counter[str], how: str, with_config: bool
) -> None:
    run = tmp_path / "run"
    assert main([*WORDS, "--run", str(run), "--threads", "1"]) == 0
    if not with_config:
        RunFolder(run).config.unlink()
    reads.clear()
    if how == "command":
        assert main(["resume", str(run), "--iterations", "6"]) == 0
    else:
        dd.resume(run, iterations=6)
    assert reads == {"data": 1, "network": 1, "checkpoint": 1}
    assert dd.load(RunFolder(run).distilled).header.configuration["outer_step"] == 6


def test_the_same_call_in_python_reads_the_checkpoint_once(
    tmp_path: Path, reads: Counter[str]
) -> None:
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, **stop_after(5))
    assert not reads
    go(tmp_path)
    assert reads == {"checkpoint": 1}


def test_command_and_python_resume_to_the_same_bytes(tmp_path: Path) -> None:
    run, copy = tmp_path / "run", tmp_path / "copy"
    assert main([*WORDS, "--run", str(run), "--threads", "1"]) == 0
    shutil.copytree(run, copy)
    assert main(["resume", str(run), "--iterations", "6", "--quiet"]) == 0
    dd.resume(copy, iterations=6)
    assert contents(run) == contents(copy)


@pytest.mark.usefixtures("forked_workers")
def test_python_resumes_a_run_of_several_processes_in_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = tmp_path / "run"
    words = [*WORDS, "--initialization", "random", "--networks", "2", "--test-networks", "2"]
    assert main([*words, "--run", str(run), "--processes", "2"]) == 0
    resumed = dd.resume(run, iterations=5)
    assert resumed.header.configuration["outer_step"] == 5
    assert [one.processes for one in resumed.header.engines] == [2, 1]
    assert "may change the last bits of the result: processes: 2 → 1.\n" in caplog.text
    with pytest.raises(ConfigError, match="processes cannot be changed"):
        dd.resume(run, processes=2)


def test_python_names_code_and_paths_as_the_command_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loaded_net.py").write_text(
        "import torch.nn as nn\n\n\nclass Mine(nn.Sequential):\n"
        "    def __init__(self):\n        super().__init__(nn.Flatten(), nn.Linear(784, 10))\n"
    )
    words = [*WORDS, "--model", "loaded_net.py:Mine", "--threads", "1"]
    assert main([*words, "--run", "run"]) == 0
    with pytest.raises(ConfigError, match="name it yourself: --model"):
        dd.resume("run", iterations=5)
    resumed = dd.resume("run", iterations=5, model="loaded_net.py:Mine", data_dir="elsewhere")
    assert resumed.header.configuration["outer_step"] == 5
    text = (tmp_path / "run" / "config.yaml").read_text()
    assert f"data_dir: {tmp_path / 'elsewhere'}\n" in text
    with pytest.raises(ConfigError, match="steps cannot be changed"):
        dd.resume("run", steps=3)


def test_a_run_in_use_is_refused_before_anything_is_read(
    tmp_path: Path, reads: Counter[str]
) -> None:
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, **stop_after(3))
    with (
        locked(RunFolder(tmp_path).lock),
        pytest.raises(RunError, match="is in use by process"),
    ):
        dd.resume(tmp_path)
    assert not reads


@pytest.mark.parametrize(
    ("setting", "value", "expected"),
    [
        ("model", "lenet", False),
        ("model", "net.py:Net", True),
        ("model", r"x:\net", True),  # a module of one letter, not a drive
        ("objective", "package.module:function", True),
        ("objective", None, False),
        ("data", r"C:\pictures", False),
        ("data", "C:/pictures", False),
        ("data", r"C:\pictures\mine.py:Mine", True),
        ("data", "mine.py:Mine", True),
        ("data", "m:Mine", True),
    ],
)
def test_a_value_with_a_colon_is_code_but_a_drive_letter_is_not(
    setting: str, value: str | None, expected: bool
) -> None:
    assert names_code(setting, value) is expected


@pytest.mark.parametrize("setting", CODE_SETTINGS)
def test_only_code_that_the_user_names_is_run(setting: str) -> None:
    config = RunConfig(**{setting: "mine.py:Mine"})  # pyright: ignore[reportArgumentType]
    flag = setting.replace("_", "-")
    for said in ({}, {setting: None}, {setting: "other.py:Mine"}):
        with pytest.raises(ConfigError, match=f"yourself: --{flag} mine.py:Mine"):
            check_no_code(config, "a file", said)
    check_no_code(config, "a file", {setting: "mine.py:Mine"})
