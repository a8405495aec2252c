"""The preset ``best``: adapted to the initialization, below what a recipe or a user says."""

from pathlib import Path
from typing import Any

import pytest
import torch

import datadistill as dd
from datadistill.cli.distill import Distill
from datadistill.cli.main import main
from datadistill.cli.parsing import parse
from datadistill.core.adjoint import Adjoint, Truncated
from datadistill.errors import ConfigError
from datadistill.runs.calls.presets import FIXED, PRETRAINED, RANDOM, UPDATES
from datadistill.runs.config import RunConfig
from datadistill.runs.recipes import read_recipe
from datadistill.runs.seams import make, make_rule
from datadistill.runs.store.yaml_files import read_config

TINY: dict[str, Any] = {"iterations": 2, "batch_size": 32, "model": "linear", "test_networks": 2}


def flags(settings: dict[str, Any]) -> list[str]:
    return [w for n, v in settings.items() for w in (f"--{n.replace('_', '-')}", str(v))]


def config_of(*words: str) -> RunConfig:
    command = parse(["distill", *words, "--preset", "best"])
    assert isinstance(command, Distill)
    return command.config


def has(config: RunConfig, settings: dict[str, Any]) -> bool:
    return {name: getattr(config, name) for name in settings} == settings


@pytest.mark.parametrize(
    ("initialization", "settings"),
    [
        ("random", RANDOM),
        ("fixed", FIXED),
        ("fixed-pretrained", FIXED),
        ("random-pretrained", PRETRAINED),
    ],
)
def test_each_kind_of_initialization_has_settings_of_its_own(
    initialization: str, settings: dict[str, Any]
) -> None:
    config = config_of("--initialization", initialization)
    assert has(config, settings)
    assert (config.steps * config.epochs >= UPDATES) == (initialization == "random")


def test_momentum_makes_no_longer_updates() -> None:
    plain, best = read_recipe("cifar10-random-100").config, config_of("cifar10-random-100")
    assert best.epochs * best.steps == UPDATES
    assert best.learning_rate / (1 - best.momentum) == pytest.approx(plain.learning_rate)
    assert (best.data, best.steps, best.networks) == (plain.data, plain.steps, plain.networks)


def test_flags_override_it_and_what_belongs_to_them_is_left_out() -> None:
    assert config_of("mnist-random-100", "--batch-size", "7").batch_size == 7
    exact = config_of("mnist-random-100", "--adjoint", "back-gradient")
    assert make(Adjoint, exact) == dd.BackGradient()
    assert make(Adjoint, config_of("--window", "9")) == Truncated(9)
    assert make_rule(config_of("--update-rule", "adam")) == dd.Adam()
    assert config_of("--adjoint", "ridge-head").labels == "logits"
    assert config_of("--no-learn-labels").labels is None
    fixed = config_of("mnist-random-100", "--initialization", "fixed")
    assert has(fixed, FIXED)
    assert fixed.adjoint == "back-gradient"


def test_a_recipe_may_override_it_below_its_name(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("outer_lr: 0.3\nmomentum: 0.1\nbest:\n  momentum: 0.7\n  start: average\n")
    best = read_recipe(str(mine), "best").config
    assert (best.momentum, best.start, best.labels, best.outer_lr) == (0.7, "average", "soft", 0.3)
    assert read_recipe(str(mine)).config.momentum == 0.1
    paper = read_recipe(str(mine), "paper").config
    assert (paper.momentum, paper.labels) == (0, None)
    mine.write_text("best: 3\n")
    with pytest.raises(ConfigError, match=r"mine\.yaml: best is 3"):
        read_recipe(str(mine))


@pytest.mark.usefixtures("pictures")
def test_a_run_records_and_tells_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    words = ["--preset", "best", *flags(TINY), "--epochs", "5", "--window", "2", "--run", str(run)]
    assert main(["distill", *words, "--dry-run"]) == 0
    assert "Preset best: --labels soft" in (told := capsys.readouterr().err)
    assert "--momentum 0.5" in told
    assert not run.exists()
    assert main(["distill", *words]) == 0
    config = read_config(run / "config.yaml")
    expected = RANDOM | {"batch_size": 32, "window": 2, "epochs": 5}
    assert has(config, expected)
    assert dd.load(run / "distilled.safetensors").header.configuration["momentum"] == 0.5


@pytest.mark.parametrize("initialization", [dd.RandomInit(), dd.FixedInit(), "fixed"])
def test_python_has_it_too(initialization: Any) -> None:
    train, _ = dd.data.load("digits")
    distilled = dd.distill(
        train,
        torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 10)),
        initialization=initialization,
        preset="best",
        epochs=4,
        iterations=1,
    )
    kind = RANDOM if isinstance(initialization, dd.RandomInit) else FIXED
    found = distilled.header.configuration
    assert {n: found[n] for n in ("labels", "batch_size", "averaging")} == {
        "labels": "soft",
        "batch_size": 256,
        "averaging": kind.get("averaging", 0.0),
    }
    assert found["epochs"] == 4


def test_the_papers_preset_in_python_keeps_the_last() -> None:
    data = torch.randn(40, 4), torch.arange(40) % 2
    found = dd.distill(data, torch.nn.Linear(4, 2), preset="paper", iterations=1)
    assert found.header.configuration["keep"] == "last"
    assert found.header.configuration["betas"] == [0.5, 0.999]


def test_without_classes_labels_and_start_are_as_usual() -> None:
    data = torch.randn(20, 4), torch.randn(20, 1)
    found = dd.distill(
        data, torch.nn.Linear(4, 1), objective="regression", preset="best", iterations=1, epochs=3
    )
    assert found.header.configuration["start"] == "noise"
    assert found.header.configuration["momentum"] == RANDOM["momentum"]
