"""The code and the commands of docs/objectives.md, as a reader would run them."""

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

import datadistill as dd
from datadistill.cli.main import main

PAGE = (Path(__file__).parents[2] / "docs" / "objectives.md").read_text(encoding="utf-8")
SMALL = {
    "distill": "--model linear --iterations 2 --test-networks 1 --processes 1 --quiet",
    "resume": "--iterations 3 --quiet",
    "evaluate": "--networks 2",
}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.M | re.S)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the file that the page tells to save."""
    function, _, classes, _ = blocks("python")
    (tmp_path / "my_objectives.py").write_text(function + classes)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_objectives", raising=False)
    return tmp_path


def test_the_commands_run(folder: Path) -> None:
    commands = [line for block in blocks("sh") for line in block.splitlines()]
    assert len(commands) == 5
    for command in commands:
        program, name, *flags = shlex.split(command)
        assert program == "datadistill"
        assert main([name, *flags, *SMALL[name].split()]) == 0, command
    records = [
        dd.load(folder / "runs" / run / "distilled.safetensors").header.objective
        for run in ("eights", "focal")
    ]
    assert records == [
        {"name": "own-loss", "function": "my_objectives.py:careful_about_eights"},
        {"name": "my_objectives.py:Focal", "gamma": 1.0},
    ]
    # Code that only a file names is not run.
    assert main(["resume", "runs/focal", "--iterations", "4", "--quiet"]) == 2


@pytest.mark.usefixtures("folder")
def test_the_python_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    full = dd.distill

    def small(*arguments: Any, **settings: Any) -> dd.DistilledData:
        return full(*arguments, **settings, iterations=2, batch_size=100, validation=0.1)

    monkeypatch.setattr(dd, "distill", small)
    found = dict[str, Any]()
    _, first, _, second = blocks("python")
    exec(compile(first + second, "objectives.md", "exec"), found)
    assert found["distilled"].objective.record() == {"name": "my_objectives:Focal", "gamma": 1.0}
    assert found["regression"].objective.record() == {"name": "my_objectives:RootMeanSquare"}
    assert found["Focal"].is_mean
    assert not found["RootMeanSquare"].is_mean
