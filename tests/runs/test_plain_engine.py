"""The plain engine on the command line: by flag and by environment, with the fast one's result."""

from pathlib import Path

import pytest
import torch

import datadistill as dd
from datadistill.cli.main import main
from datadistill.runs.store.yaml_files import read_yaml

SMALL = "--data digits --model linear --dtype float64 --iterations 3 --test-networks 2 --quiet"


def distilled(folder: Path, *flags: str) -> dd.DistilledData:
    """Random initializations, whose networks would be divided among processes."""
    assert main(["distill", *SMALL.split(), "--run", str(folder), *flags]) == 0
    return dd.load(folder / "distilled.safetensors")


@pytest.mark.parametrize("by", ["flag", "environment"])
def test_the_plain_engine_gives_the_fast_ones_result_in_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    fast = distilled(tmp_path / "fast", "--processes", "1")
    if by == "environment":
        monkeypatch.setenv("DATADISTILL_ENGINE", "plain")
    # Processes are not named: a measurement chooses, and must not choose several.
    plain = distilled(tmp_path / "plain", *(["--engine", "plain"] if by == "flag" else []))
    config = read_yaml(tmp_path / "plain" / "config.yaml")
    assert (config["engine"], config["processes"], config["networks"]) == ("plain", 1, 4)
    assert read_yaml(tmp_path / "fast" / "config.yaml")["engine"] == "fast"
    for name in ("inputs", "learning_rates"):
        ours, theirs = getattr(plain.steps, name), getattr(fast.steps, name)
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


def test_several_processes_are_refused_by_the_plain_engine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--engine", "plain", "--processes", "2", "--run", str(tmp_path / "run")]
    assert main(["distill", *SMALL.split(), *flags]) == 2
    assert "The plain engine is one process." in capsys.readouterr().err
