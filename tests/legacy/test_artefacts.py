"""Artefacts of an earlier version: load, train, evaluate, verify."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

import datadistill as dd

from . import modules
from .common import figures_of
from .conftest import Digits
from .helpers import ARTEFACTS, EXPECTED, POOL, RTOL, datadistill, tolerance

NAMES = sorted(path.stem for path in ARTEFACTS.glob("*.safetensors"))
OWN = {
    "left-out": modules.small,
    "own-module": modules.Small,
    "regression": modules.regressor,
}
POOLED = ("poisoning", "pool")


def loaded(name: str) -> dd.DistilledData:
    distilled = dd.load(ARTEFACTS / f"{name}.safetensors")
    return distilled.with_pool(POOL) if name in POOLED else distilled


def module_of(name: str) -> nn.Module | None:
    return OWN[name]() if name in OWN else None


def data_of(name: str, digits8: Digits) -> Any:
    """The data that the artefact's claim was measured on."""
    if name == "regression":
        return modules.measurements()
    if name == "random":
        return dd.data.load("digits")[1]
    if name == "no-test":
        return digits8[0].hold_out(0.1, seed=0)[1]
    return digits8[1]


def test_none_is_missing() -> None:
    assert set(NAMES) == set(EXPECTED["artefacts"])
    assert len(NAMES) == 15


@pytest.mark.parametrize("name", NAMES)
def test_it_loads_and_trains_the_same_network(name: str, tmp_path: Path) -> None:
    wanted = EXPECTED["artefacts"][name]
    distilled = loaded(name)
    assert distilled.claim
    assert distilled.claim.mean == wanted["claim"]
    figure = f"{100 * wanted['claim']:.2f}"
    assert ("0.0009582" if name == "regression" else figure) in repr(distilled)
    trained = distilled.train(module_of(name), seed=1).state_dict()
    found = figures_of(trained)
    assert list(found) == list(wanted["trained"])
    for weight, figures in wanted["trained"].items():
        assert found[weight] == pytest.approx(figures, rel=RTOL, abs=RTOL), weight
    distilled.save(tmp_path / "again.safetensors")
    again = dd.load(tmp_path / "again.safetensors")
    again = again.with_pool(POOL) if name in POOLED else again
    once_more = again.train(module_of(name), seed=1).state_dict()
    assert all(torch.equal(once_more[weight], trained[weight]) for weight in trained)


@pytest.mark.parametrize("name", NAMES)
def test_it_reaches_what_it_claims(name: str, digits8: Digits) -> None:
    distilled, data, module = loaded(name), data_of(name, digits8), module_of(name)
    claim = distilled.claim
    assert claim
    found = dd.evaluate(distilled, data, networks=claim.networks, module=module)
    assert found.mean == pytest.approx(claim.mean, abs=max(tolerance(claim), 1e-6))
    assert len(found.values) == claim.networks
    assert dd.verify(distilled, data, module=module).holds


@pytest.mark.parametrize("name", ["own-module", "left-out", "regression", *POOLED])
def test_what_is_not_in_the_file_has_to_be_given(name: str) -> None:
    with pytest.raises(dd.DataDistillError):
        dd.load(ARTEFACTS / f"{name}.safetensors").train()


def test_left_out_weights_are_recognised() -> None:
    other = modules.small()
    with torch.no_grad():
        other.fc.bias[0] += 1e-3
    with pytest.raises(dd.DataDistillError, match="weights"):
        loaded("left-out").train(other)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("fixed", []),
        ("no-test", []),
        ("own-objective", []),
        ("own-module", ["--model", "modules.py:Small"]),
        ("left-out", ["--model", "modules.py:small"]),
        ("pool", ["--pool", POOL]),
        ("poisoning", ["--pool", POOL]),
        ("pretrained", []),
    ],
)
def test_the_command_verifies_it(name: str, words: list[str | Path], here: Path) -> None:
    assert datadistill("verify", ARTEFACTS / f"{name}.safetensors", "--quiet", *words) == 0


def test_the_command_trains_with_it(here: Path) -> None:
    artefact = ARTEFACTS / "pretrained.safetensors"
    assert datadistill("train", artefact, "--quiet", "--output", "net.safetensors") == 0
    found = figures_of(load_file("net.safetensors"))
    for weight, figures in EXPECTED["artefacts"]["pretrained"]["trained"].items():
        assert found[weight] == pytest.approx(figures, rel=RTOL, abs=RTOL), weight
