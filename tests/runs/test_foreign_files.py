"""Files of another run, put into the folder of a run, are refused."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from datadistill.artefact.container import read_container, write_container
from datadistill.cli.main import main
from datadistill.errors import RunError
from datadistill.runs.store.checkpoint import newest, read_checkpoint
from datadistill.runs.store.metrics import read_metrics
from tests.runs.helpers import contents, go, stop_after

Copy = Callable[[str], Path]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs with the same settings but for the seed, stopped and finished, and one again."""
    place = tmp_path_factory.mktemp("runs")
    for name, seed in (("mine", 0), ("other", 1), ("again", 0)):
        go(place / name, seed=seed)
        with pytest.raises(KeyboardInterrupt):
            go(place / f"{name}-stopped", seed=seed, **stop_after(7))
    return place


@pytest.fixture
def copy(runs: Path, tmp_path: Path) -> Copy:
    def copied(name: str) -> Path:
        return Path(shutil.copytree(runs / name, tmp_path / name))

    return copied


@pytest.mark.parametrize("other", ["other", "again"])
def test_the_log_of_another_run_is_refused_and_stays(runs: Path, copy: Copy, other: str) -> None:
    run = copy("mine-stopped")
    log = run / "metrics.jsonl"
    foreign = (runs / f"{other}-stopped" / "metrics.jsonl").read_bytes()
    log.write_bytes(foreign)
    with pytest.raises(RunError, match=r"metrics\.jsonl is the log of another run") as caught:
        go(run)
    assert len(str(caught.value).splitlines()) == 2
    assert log.read_bytes() == foreign
    shutil.copy(runs / "mine-stopped" / "metrics.jsonl", log)
    go(run)
    assert contents(run) == contents(runs / "mine")


def test_checkpoints_of_another_run_with_the_same_settings_are_refused(
    runs: Path, copy: Copy
) -> None:
    run = copy("mine-stopped")
    shutil.rmtree(run / "checkpoints")
    shutil.copytree(runs / "again-stopped" / "checkpoints", run / "checkpoints")
    with pytest.raises(RunError, match="is the log of another run"):
        go(run)


def test_a_log_that_was_deleted_begins_again_and_is_known_from_there(copy: Copy) -> None:
    run = copy("mine-stopped")
    (run / "metrics.jsonl").unlink()
    with pytest.raises(KeyboardInterrupt):
        go(run, **stop_after(10))
    assert [row.outer_step for row in read_metrics(run / "metrics.jsonl")] == [7, 8, 9, 10]
    go(run)
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert newest(run / "checkpoints")[0].log == rows[-1]["check"]


@pytest.mark.parametrize("name", ["distilled", "last"])
def test_the_artefact_of_another_run_is_refused_and_stays(
    runs: Path, copy: Copy, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = copy("mine")
    foreign = (runs / "other" / f"{name}.safetensors").read_bytes()
    (run / "distilled.safetensors").write_bytes(foreign)
    with pytest.raises(RunError, match=r"distilled\.safetensors is not the artefact") as caught:
        go(run)
    assert len(str(caught.value).splitlines()) == 2
    assert main(["evaluate", str(run)]) == 2
    assert "is not the artefact whose hash results.json holds" in " ".join(
        capsys.readouterr().err.split()
    )
    assert (run / "distilled.safetensors").read_bytes() == foreign
    (run / "distilled.safetensors").unlink()
    go(run)  # as the message says
    assert contents(run) == contents(runs / "mine")


def test_results_of_another_run_are_refused_also_with_their_artefact(
    runs: Path, copy: Copy
) -> None:
    run = copy("mine")
    shutil.copy(runs / "other" / "results.json", run)
    for _ in range(2):
        with pytest.raises(RunError, match=r"results\.json holds the results of another run"):
            go(run)
        shutil.copy(runs / "other" / "distilled.safetensors", run)
    (run / "results.json").unlink()
    go(run)
    assert contents(run) == contents(runs / "mine")


def test_files_of_earlier_versions_are_accepted(runs: Path, copy: Copy) -> None:
    """Without the log's checksum in checkpoints, and without hashes in results."""
    run = copy("mine-stopped")
    for path in (run / "checkpoints").iterdir():
        tensors, header = read_container(path, "checkpoint")
        assert len(header.pop("log")) == 8
        write_container(path, tensors, header, "checkpoint")
        assert read_checkpoint(path).log == ""
    go(run)
    assert contents(run) == contents(runs / "mine")
    results = json.loads((run / "results.json").read_text())
    section: dict[str, Any] = results["run"]
    del section["state"]
    for name in ("last", "best", "distilled"):
        assert len(section[name].pop("sha256")) == 64
    (run / "results.json").write_text(json.dumps(results))
    go(run)
    assert json.loads((run / "results.json").read_text()) == results  # it was finished
