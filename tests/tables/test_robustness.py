"""DD-Ranking's scores, and the protocols of the field."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

import datadistill as dd
from datadistill.core.initialization import networks_for
from datadistill.tables.robustness import score
from tests.cli.helpers import run


@pytest.fixture(scope="module")
def artefact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    train, _ = dd.data.load("digits", size=8)
    few = train.part(torch.arange(200), "train")
    settings: dict[str, Any] = {"iterations": 3, "batch_size": 32, "learn_labels": True}
    init = dd.FixedInit()
    made = dd.distill(few, dd.models.MLP(size=8), initialization=init, **settings)
    path = tmp_path_factory.mktemp("made") / "made.safetensors"
    made.save(path)
    return path


def test_scores_by_hand() -> None:
    found = dd.Robustness(
        full=0.9, hard=0.5, own=0.6, random=0.3, own_viewed=0.7, random_viewed=0.5
    )
    assert found.hard_label_recovery == pytest.approx(0.4)
    assert found.improvement_over_random == pytest.approx(0.3)
    # α = 0.5 · 0.3 − 0.5 · 0.4 = −0.05, β = 0.5 · 0.2 + 0.5 · 0.3 = 0.25
    below, above = math.exp(-1), math.e
    expected = (math.exp(-0.05) - below) / (above - below)
    assert found.label_robust_score == pytest.approx(expected) == pytest.approx(0.248194, abs=1e-5)
    expected = (math.exp(0.25) - below) / (above - below)
    assert found.augmentation_robust_score == pytest.approx(expected)
    assert (score(-1), score(1)) == (0, 1)
    assert found.as_json()["label_robust_score"] == found.label_robust_score


def test_protocols_of_the_field() -> None:
    vico = dd.PROTOCOLS["vico"]
    assert vico.networks == 20
    assert [vico.training.rate_at(t, 10) for t in (0, 149, 150, 299)] == [
        *(0.01, 0.01),
        *(pytest.approx(0.001), pytest.approx(0.001)),
    ]
    assert vico.training.rule == dd.WeightDecay(5e-4, dd.Momentum(0.9))
    assert dd.PROTOCOLS["field"].training.rule == vico.training.rule
    assert "1000 epochs" in str(dd.PROTOCOLS["field"].training)


def test_a_protocol_is_sgd_with_weight_decay_on_fresh_networks(
    artefact: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--protocol", "vico", "--epochs", "4", "--networks", "1", "--json", "--quiet"]
    assert run("evaluate", str(artefact), *words, "--hard-labels") == 0
    found = json.loads(capsys.readouterr().out)
    distilled = dd.load(artefact).with_initialization(dd.RandomInit())
    # The same by torch's own SGD.
    network = distilled.network()
    seeds = networks_for(0, "held-out network", [0])
    module = network.module({n: w[0] for n, w in distilled.initial_weights(network, seeds).items()})
    inputs, labels = distilled.inputs.flatten(0, 1), distilled.labels.flatten(0, 1).argmax(-1)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    half = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2], 0.1)
    for _ in range(4):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(module(inputs), labels).backward()
        optimizer.step()
        half.step()
    _, test = dd.data.load("digits", size=8, normalization=distilled.normalization)
    pixels, classes = test.tensors()
    right = (module(pixels).argmax(1) == classes).float().mean()
    assert found["mean"] == pytest.approx(float(right))
    assert "weight decay 0.0005, lr × 0.1 at half, hard labels" in found["note"]


def test_scores_on_the_command_line(artefact: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--protocol", "field", "--epochs", "3", "--networks", "2", "--scores"]
    assert run("evaluate", str(artefact), *words, "--json", "--quiet") == 0
    found = json.loads(capsys.readouterr().out)
    given = {n: found[n] for n in ("full", "hard", "own", "random", "own_viewed", "random_viewed")}
    assert all(0 <= value <= 1 for value in given.values())
    assert found["full"] > 0.8
    assert found["label_robust_score"] == dd.Robustness(**given).label_robust_score
    assert run("evaluate", str(artefact), *words, "--quiet") == 0
    assert "augmentation-robust score" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--scores"], "--scores needs --protocol"),
        (["--hard-labels"], "--hard-labels needs --ordinary"),
        (["--protocol", "field", "--ordinary"], "is ordinary training already"),
    ],
)
def test_flags_that_contradict_each_other(
    words: list[str], message: str, artefact: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("evaluate", str(artefact), *words) == 2
    assert message in capsys.readouterr().err


def test_settings_that_make_no_sense() -> None:
    adam = {"optimizer": "adam", "weight_decay": 0.1}
    for wrong in ({"weight_decay": -1.0}, {"drop": 0.0}, adam):
        with pytest.raises(dd.DataDistillError):
            dd.OrdinaryTraining(**wrong)  # pyright: ignore[reportArgumentType]
