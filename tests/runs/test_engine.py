"""A run that begins with kernels and goes on without: told, recorded, or refused."""

import os
import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

import datadistill as dd
from datadistill.cli.main import main
from datadistill.engine.kernels import kernels
from datadistill.engine.kernels.library import loaded
from datadistill.errors import ConfigError
from datadistill.notices import warn_once
from datadistill.runs.store.checkpoint import newest
from datadistill.runs.store.folder import RunFolder

from .helpers import IMAGES, LABELS, contents, finish, start

pytestmark = pytest.mark.skipif(
    kernels(torch.float32).functions is None, reason="needs a C compiler"
)
NO_COMPILER = {"CC": "/nonexistent/cc"}


@dataclass
class Killed:
    """A run with kernels that was killed: its folder, and the last outer step it saved."""

    folder: Path
    reached: int

    def copy(self, path: Path) -> Path:
        return shutil.copytree(self.folder, path)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Killed:
    """A real process, killed in the middle, in a place that can be copied."""
    place = tmp_path_factory.mktemp("killed")
    data, run = place / "data.npz", place / "run"
    inputs = torch.cat([IMAGES, -IMAGES], 1).numpy()  # two channels, so that none is drawn
    arrays = {f"{part}_inputs": inputs for part in ("train", "test")}
    arrays |= {f"{part}_labels": LABELS.numpy() for part in ("train", "test")}
    np.savez(data, **arrays)  # pyright: ignore[reportArgumentType]
    process = start(
        *("distill", "--quiet", "--data", str(data), "--run", str(run), "--threads", "1"),
        *("--initialization", "fixed", "--steps", "1", "--epochs", "1", "--batch-size", "8"),
        *("--iterations", "100000", "--checkpoint-every", "1", "--validate-every", "1000000"),
    )
    folder = RunFolder(run)
    while not any(path.stem > "step-00000002" for path in folder.checkpoints.glob("step-*")):
        assert process.poll() is None, finish(process)
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    reached = newest(folder.checkpoints)[0].state.outer_step
    return Killed(run, reached)


def more(killed: Killed) -> list[str]:
    return ["--iterations", str(killed.reached + 3)]


def steps_of(distilled: dd.DistilledData) -> list[tuple[int, bool]]:
    return [(one.outer_step, one.has_kernels) for one in distilled.header.engines]


def test_what_computes_stands_in_checkpoint_configuration_and_artefact(
    killed: Killed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = killed.copy(tmp_path / "run")
    (saved,) = newest(RunFolder(run).checkpoints)[0].state.engines
    assert saved.kernels == kernels(torch.float32).identity
    assert f"# Computed from outer step 1 on by: {saved}.\n" in (run / "config.yaml").read_text()
    assert main(["resume", str(run), "--quiet", *more(killed)]) == 0
    assert capsys.readouterr().err == ""
    made = dd.load(RunFolder(run).distilled)
    assert made.header.engines == (saved,)
    again = killed.copy(tmp_path / "again")
    assert main(["resume", str(again), "--quiet", "--engine", "fast", *more(killed)]) == 0
    assert contents(again) == contents(run)


def test_without_the_compiler_it_goes_on_and_says_so_and_the_artefact_records_both(
    killed: Killed, tmp_path: Path
) -> None:
    run = killed.copy(tmp_path / "run")
    words = ["resume", str(run), "--quiet", *more(killed)]
    code, said = finish(start(*words, variables=NO_COMPILER))
    assert code == 0, said
    told = [line for line in said.splitlines() if line.startswith(("warning: ", "To compute"))]
    first = killed.reached + 1
    hashed = kernels(torch.float32).identity[:8]
    assert told == [
        "warning: No C kernels (no C compiler): torch computes convolutions, which takes longer "
        "and changes the last bits of results. Install one, or name it in CC. To do without: "
        "DATADISTILL_ENGINE=torch.",
        f"warning: The engine differs from outer step {first:,} on, which may change the last bits "
        f"of the result: kernels: {hashed} → none: no C compiler.",
        f"To compute as before: datadistill resume {run} --engine kernels --threads 1 "
        "--processes 1",
    ]
    made = dd.load(RunFolder(run).distilled)
    assert steps_of(made) == [(1, True), (first, False)]
    assert newest(RunFolder(run).checkpoints)[0].state.engines == made.header.engines
    assert (run / "config.yaml").read_text().count("# Computed from outer step") == 2


def test_kernels_that_are_pinned_are_never_given_up(
    killed: Killed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = killed.copy(tmp_path / "run")
    before = contents_of_checkpoints(run)
    monkeypatch.setenv("CC", "/nonexistent/cc")
    loaded.cache_clear()
    warn_once.cache_clear()
    try:
        with pytest.raises(ConfigError, match="there are none: no C compiler"):
            dd.resume(run, engine="kernels")
    finally:
        loaded.cache_clear()
    assert contents_of_checkpoints(run) == before


def contents_of_checkpoints(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in RunFolder(run).checkpoints.iterdir()}


def test_torch_goes_on_without_kernels_on_any_machine(
    killed: Killed, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    here = killed.copy(tmp_path / "here")
    made = dd.resume(here, iterations=killed.reached + 1, engine="torch")
    first = killed.reached + 1
    assert steps_of(made) == [(1, True), (first, False)]
    assert "kernels: " in caplog.text
    caplog.clear()
    # The run keeps to it: from now on it is what the run is computed with.
    assert steps_of(dd.resume(here, iterations=killed.reached + 2)) == steps_of(made)
    assert caplog.text == ""
    # Kernels again: a third engine, the first one.
    third = dd.resume(here, iterations=killed.reached + 3, engine="kernels")
    assert steps_of(third) == [(1, True), (first, False), (killed.reached + 3, True)]


def test_a_test_by_another_engine_is_recorded_after_the_last_outer_step(
    killed: Killed, tmp_path: Path
) -> None:
    run = killed.copy(tmp_path / "run")
    made = dd.resume(run, iterations=killed.reached, engine="torch")
    assert steps_of(made) == [(1, True), (killed.reached + 1, False)]


def test_a_finished_run_is_not_said_to_differ(
    killed: Killed, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = killed.copy(tmp_path / "run")
    dd.resume(run, iterations=killed.reached)
    before = (run / "config.yaml").read_text()
    caplog.clear()
    assert len(dd.resume(run, engine="torch").header.engines) == 1
    assert caplog.text == ""
    assert (run / "config.yaml").read_text() == before.replace("engine: fast", "engine: torch")
