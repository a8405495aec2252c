"""``docs/extending.md``: the page's files, used from outside the package as it says."""

import contextlib
import importlib
import io
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

import datadistill as dd
from datadistill.cli.main import main
from datadistill.tables import Counts
from tests.processes import python

PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text()
FILES = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE, flags=re.DOTALL))
QUICK = [
    *("--threads", "1", "--iterations", "20", "--checkpoint-every", "5"),
    *("--networks", "2", "--test-networks", "4"),
]


def commands(marker: str) -> list[list[str]]:
    """The commands of the page below a marker, without ``datadistill``."""
    block = re.search(rf"<!-- {marker} -->\n```sh\n(.*?)```", PAGE, flags=re.DOTALL)
    assert block
    return [shlex.split(line)[1:] for line in block[1].strip().splitlines()]


def start(folder: Path, arguments: list[str]) -> subprocess.Popen[str]:
    environment = {**os.environ, "COLUMNS": "200"}
    command = ["-m", "datadistill", *arguments, "--quiet"]
    return python(*command, cwd=folder, env=environment, stderr=subprocess.STDOUT)


def run(folder: Path, arguments: list[str], code: int = 0) -> str:
    """Runs a command in this process; returns what it said."""
    said = io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(said),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("COLUMNS", "200")
        assert main([*arguments, "--quiet"]) == code, said.getvalue()
    return said.getvalue()


def run_anew(folder: Path, arguments: list[str], code: int = 0) -> str:
    """The same in a new process, which knows nothing of the user's code."""
    process = start(folder, arguments)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == code, said
    return said


def flags(arguments: list[str], *names: str) -> list[str]:
    """Some flags of a command with their values."""
    found = {name: arguments[arguments.index(name) + 1] for name in names}
    return [part for pair in found.items() for part in pair]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("outside")
    for name, text in FILES.items():
        (path / name).write_text(text)
    return path


@pytest.fixture(scope="module")
def finished(folder: Path) -> Path:
    """The run of the page, never stopped."""
    (command,) = commands("together")
    run(folder, [*command, *QUICK])
    return folder / "runs" / "own"


@pytest.mark.parametrize("name", FILES)
def test_every_example_is_short(name: str) -> None:
    assert len(FILES[name].strip().splitlines()) < 30


def test_there_is_an_example_of_every_kind_in_the_table() -> None:
    assert [*FILES] == re.findall(r"`[^`]*?(\w+\.py):\w+[^`]*` \|$", PAGE, flags=re.MULTILINE)


def test_a_killed_run_of_own_code_resumes_to_the_same_bytes(folder: Path, finished: Path) -> None:
    (command,) = commands("together")
    command[command.index("runs/own")] = "runs/killed"
    process = start(folder, [*command, *QUICK])
    checkpoints = folder / "runs" / "killed" / "checkpoints"
    while process.poll() is None and not any(checkpoints.glob("step-000000[1-9]*")):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not (folder / "runs" / "killed" / "distilled.safetensors").exists()
    refused = run(folder, ["resume", "runs/killed"], code=2)
    assert "Code that only a file names is not run" in refused
    named = ["--data", "--model", "--update-rule", "--objective", "--parametrisation"]
    own = flags(command, *named, "--initialization", "--adjoint", "--view")
    run(folder, ["resume", "runs/killed", *own])
    expected = (finished / "distilled.safetensors").read_bytes()
    assert (folder / "runs" / "killed" / "distilled.safetensors").read_bytes() == expected


def test_the_commands_that_use_the_artefact_work_as_printed(folder: Path, finished: Path) -> None:
    train, verify = commands("after")
    run(folder, train)
    assert (finished / "distilled-trained.safetensors").is_file()
    assert "The claim holds" in run_anew(folder, verify)
    evaluated = run(folder, ["evaluate", *verify[1:], "--networks", "4"])
    assert re.search(r"% on digits test over 4 networks", evaluated)


def test_an_artefact_of_own_code_says_what_to_name(folder: Path, finished: Path) -> None:
    model = ["--model", "networks.py:Small", "--model-args", "width=24"]
    artefact = str(finished / "distilled.safetensors")
    said = run_anew(folder, ["train", artefact, "--overwrite", *model], code=2)
    assert "--initialization initializations.py:Sparse" in said


def test_own_objects_work_from_python(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in FILES:
        shutil.copy(folder / name, tmp_path / f"py_{name}")
    monkeypatch.syspath_prepend(tmp_path)
    medians, networks, rules, sets = (
        importlib.import_module(f"py_{name}") for name in ("medians", "networks", "rules", "sets")
    )
    train, test = sets.small_digits()
    settings: Any = {"iterations": 3, "networks": 2, "threads": 1, "test": test, "test_networks": 2}
    made = dd.distill(
        train,
        networks.Small(),
        update_rule=rules.SmoothSign(beta=3.0),
        run=tmp_path / "run",
        **settings,
    )
    made.save(tmp_path / "own.safetensors")
    loaded = dd.load(tmp_path / "own.safetensors")
    assert loaded.rule == rules.SmoothSign(beta=3.0)
    found = dd.evaluate(loaded, test, networks=2, module=networks.Small())
    assert found.values == pytest.approx(dd.evaluate(made, test, networks=2).values)
    few = Counts(
        **dict.fromkeys(("sets", "kept", "picking_networks", "choosing_sets"), 1),
        **dict.fromkeys(("choosing_networks", "full_networks", "full_epochs"), 1),
        drawn=2,
        examples=64,
    )
    table = dd.baseline_table(
        made,
        train,
        test,
        settings=dd.TableSettings(networks=2, counts=few),
        baselines=[medians.Medians()],
    )
    assert 0 <= table["median real"].mean <= 1
