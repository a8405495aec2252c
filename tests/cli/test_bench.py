"""``datadistill bench``, and what ``--dry-run`` says of the same."""

import json
from pathlib import Path

import pytest

from tests.cli.helpers import run

SMALL = ("--steps", "2", "--epochs", "4", "--batch-size", "16", "--data", "digits", "--size", "8")
MINE = """
import torch
from torch import nn


class Mine(nn.Module):
    def __init__(self, decides=False):
        super().__init__()
        self.decides = decides
        self.maps, self.out = nn.Conv2d(1, 4, 3), nn.Linear(144, 10)

    def forward(self, x):
        maps = nn.functional.group_norm(self.maps(x), 2)
        if self.decides and float(maps.detach().sum()) > 1e9:
            maps = 2 * maps
        return self.out(maps.tanh().flatten(1))
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(MINE)
    return "mine.py:Mine"


def test_figures_and_ways_of_an_own_network(mine: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("bench", "--model", mine, *SMALL, "--networks", "2", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["networks"] == 2
    assert found["ratio"] == pytest.approx(found["plain"] / found["seconds"])
    assert 0 < found["share_of_peak"] < 1
    assert found["updates"] == "traced"
    named = {name: way for way, names in found["ways"].items() for name in names}
    assert named["linear"] == named["tanh"] == "torch as it is"
    assert named["conv2d"] == "torch, derivatives of our own"
    assert "group_norm" in named


def test_layers_that_follow_one_another_are_computed_in_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("bench", "--model", "mlp", *SMALL) == 0
    shown = capsys.readouterr().out
    assert "Computed by C kernels: 3 × linear, 2 × relu." in shown
    assert "Each update is one call of C code" in shown
    assert "torch" not in shown.partition("Each update")[0].partition("Computed by")[2]


def test_a_network_that_cannot_be_traced(mine: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("bench", "--model", mine, "--model-args", "decides=true", *SMALL)
    assert run(*words) == 0
    shown = capsys.readouterr().out
    assert "could not be traced" in shown
    assert "times as fast" in shown
    assert "% of the peak" in shown


def test_a_dry_run_tells_the_same(mine: str, capsys: pytest.CaptureFixture[str]) -> None:
    settings = (*SMALL, "--threads", "1", "--iterations", "1000", "--test-networks", "1")
    assert run("distill", "--model", mine, *settings, "--dry-run") == 0
    said = capsys.readouterr().err
    assert "Computed by torch as it is: 1 × linear, 1 × tanh." in said
    assert "plain PyTorch" in said
    assert not Path("runs").exists()
