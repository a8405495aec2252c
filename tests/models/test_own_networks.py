"""Ten own networks: distil → save → load → train → plain PyTorch → evaluate → verify."""

import functools
import json
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import nn

import datadistill as dd
from tests.processes import finished

from ..cli.helpers import run
from . import own_networks
from .own_networks import NETWORKS

BY_NAME = {network.__name__: network for network in NETWORKS}
SETTINGS: dict[str, Any] = {
    "iterations": 2,
    "batch_size": 32,
    "steps": 2,
    "epochs": 1,
    "learning_rate": 0.3,
    "validation": 0.02,
}
ONE, LARGE = 1, 1000

LATER = """
import json, sys
import datadistill as dd
from tests.models.test_own_networks import BY_NAME, figures_of
test = dd.data.load("digits", size=8)[1]
print(json.dumps({name: figures_of(dd.load(f"{name}.safetensors"), test) for name in BY_NAME}))
"""


@pytest.fixture(scope="module")
def digits8() -> tuple[dd.LabelledData, dd.LabelledData]:
    return dd.data.load("digits", size=8)


def accuracy(module: nn.Module, data: dd.LabelledData, batch_size: int) -> float:
    """By plain PyTorch, batch by batch."""
    inputs, labels = data.batch(slice(None), torch.device("cpu"), torch.float32)
    module.eval()
    with torch.no_grad():
        outputs = torch.cat([module(batch) for batch in inputs.split(batch_size)])
    return float((outputs.argmax(1) == labels).double().mean())


def figures_of(distilled: dd.DistilledData, test: dd.LabelledData) -> dict[str, float]:
    """The accuracy in every way there is to find it."""
    network = BY_NAME[distilled.header.architecture.name.rpartition(":")[2]]
    loaded, trained = network(), distilled.train(network(), device="cpu")
    loaded.load_state_dict(trained.state_dict(), strict=True)
    return {
        "as trained": accuracy(trained, test, LARGE),
        "one by one": accuracy(loaded, test, ONE),
        "in large batches": accuracy(loaded, test, LARGE),
        "evaluated": dd.evaluate(distilled, test, module=network(), device="cpu").mean,
        "verified": dd.verify(distilled, test, module=network(), device="cpu").found.mean,
    }


@functools.cache
def made_in_python(name: str) -> dd.DistilledData:
    train, test = dd.data.load("digits", size=8)
    init, network = dd.FixedInit(scheme="module"), BY_NAME[name]()
    return dd.distill(train, network, initialization=init, test=test, device="cpu", **SETTINGS)


def test_ten_own_networks_reach_in_a_new_process_what_they_claim(tmp_path: Path) -> None:
    claimed: dict[str, float] = {}
    for name in BY_NAME:
        made = made_in_python(name)
        assert made.claim
        claimed[name] = made.claim.mean
        made.save(tmp_path / f"{name}.safetensors")
    later = "import sys; sys.path.append(sys.argv[1])\n" + LATER
    found = finished("-c", later, Path(__file__).parents[2], cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    for name, figures in json.loads(found.stdout).items():
        assert figures == dict.fromkeys(figures, claimed[name]), name


@pytest.mark.parametrize("name", BY_NAME)
def test_ten_own_networks_reach_on_the_command_line_what_python_claims(
    name: str,
    digits8: tuple[dd.LabelledData, dd.LabelledData],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    _, test = digits8
    made = made_in_python(name)
    assert made.claim

    flags = [f"--{n.replace('_', '-')}={value}" for n, value in SETTINGS.items()]
    own = ["--model", f"{own_networks.__file__}:{name}"]
    fixed = ["--initialization=fixed", "--scheme=module", "--size=8", "--device=cpu"]
    assert run("distill", "--data=digits", *own, *fixed, *flags, "--run=mine") == 0
    artefact = "mine/distilled.safetensors"
    assert torch.equal(dd.load(artefact).inputs, made.inputs)
    capsys.readouterr()
    for command in ("evaluate", "verify"):
        assert run(command, artefact, *own, "--json") == 0
        result = json.loads(capsys.readouterr().out)
        assert result.get("found", result)["mean"] == made.claim.mean
    assert run("train", artefact, *own, "--device=cpu", "--output=weights.safetensors") == 0
    loaded = BY_NAME[name]()
    loaded.load_state_dict(safetensors.torch.load_file("weights.safetensors"), strict=True)
    assert accuracy(loaded, test, ONE) == accuracy(loaded, test, LARGE) == made.claim.mean


def test_statistics_of_real_data_can_be_named_on_the_command_line(
    digits8: tuple[dd.LabelledData, dd.LabelledData],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    train, test = digits8
    init = dd.FixedInit(scheme="module")
    made = dd.distill(train, own_networks.BatchNorm(), initialization=init, **SETTINGS)
    artefact, weights = str(tmp_path / "a.safetensors"), tmp_path / "weights.safetensors"
    made.save(artefact)
    flags = ["--model", f"{own_networks.__file__}:BatchNorm", "--statistics=digits"]
    assert run("evaluate", artefact, *flags, "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert result["statistics"] == "digits train"
    assert run("train", artefact, *flags, f"--output={weights}") == 0
    assert "Its running statistics are those of digits." in capsys.readouterr().err
    loaded = own_networks.BatchNorm()
    loaded.load_state_dict(safetensors.torch.load_file(weights), strict=True)
    assert accuracy(loaded, test, ONE) == result["mean"]
    expected = made.train(statistics=train).state_dict()
    assert all(torch.equal(value, expected[name]) for name, value in loaded.state_dict().items())
    assert run("evaluate", artefact, *flags, "--baselines") == 2
