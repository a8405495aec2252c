"""A user's own initialization is what it says, whatever its file and its class are called."""

from pathlib import Path

import pytest

import datadistill as dd
from datadistill.cli.main import main

OWN = """
from dataclasses import dataclass

import datadistill as dd


@dataclass(frozen=True)
class pretrained(dd.Initialization):
    def sample(self, network, generators):
        weights = dd.RandomInit().sample(network, generators)
        return {name: w / 2 for name, w in weights.items()}
"""


@pytest.mark.parametrize("preset", ["fast", "best"])
def test_names_that_begin_or_end_like_built_in_ones_mean_nothing(
    preset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fixed.py").write_text(OWN)
    own = ["--initialization", "fixed.py:pretrained"]
    short = ["--iterations", "1", "--networks", "2", "--test-networks", "2", "--quiet"]
    words = ["distill", "--model", "linear", "--preset", preset, *own, *short, "--run", "run"]
    assert main(words) == 0
    distilled = dd.load("run/distilled.safetensors")
    assert distilled.claim
    assert distilled.claim.networks == 2
    _, test = dd.data.load("digits")
    other = dd.evaluate(distilled, test, networks=1, architecture=dd.models.Linear())
    assert other.note.endswith("random xavier-normal weights, not those of fixed.py:pretrained")
