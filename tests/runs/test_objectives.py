"""Objectives in configurations, artefacts and on the command line."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import datadistill as dd
from datadistill.cli.main import main
from datadistill.core.objective import Objective
from datadistill.errors import ConfigError
from datadistill.runs.config import config_from
from datadistill.runs.seams import make

OWN = """
import torch.nn.functional as F

def halved(logits, labels):
    return F.cross_entropy(logits, labels) / 2
"""


def squared(logits: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(logits, labels).square()


def small(**settings: object) -> dd.DistilledData:
    train, _ = dd.data.load("digits")
    return dd.distill(train, dd.models.Linear(), iterations=2, batch_size=50, **settings)  # pyright: ignore[reportArgumentType]


def test_any_function_is_an_objective_and_is_recorded_by_name(tmp_path: Path) -> None:
    made = small(objective=squared)
    train, test = dd.data.load("digits")
    result = dd.evaluate(made, test, networks=2)
    usual = dd.evaluate(small(), test, networks=2)
    assert result.metric == "accuracy"
    assert made.header.configuration["objective"] == f"{__name__}:squared"
    assert torch.isfinite(torch.tensor(result.losses)).all()
    assert result.losses != usual.losses
    made.save(tmp_path / "own.safetensors")
    again = dd.load(tmp_path / "own.safetensors")
    assert again.objective.text == f"{__name__}:squared"
    assert again.objective.record()["name"] == "own-loss"
    assert dd.evaluate(again, test, networks=2).values == result.values
    assert len(train) > len(test)


def test_a_poisoning_artefact_says_what_it_is(tmp_path: Path) -> None:
    made = small(objective=dd.Poisoning(attacked=3, target=8))
    assert made.header.configuration["attacked"] == 3
    assert "% accuracy on modified labels" in str(made.claim)
    made.save(tmp_path / "poison.safetensors")
    assert dd.load(tmp_path / "poison.safetensors").objective == dd.Poisoning(3, 8)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"objective": "poison"}, "no objective 'poison'. Did you mean 'poisoning'"),
        ({"objective": "poisoning", "attacked": 1}, "Both the attacked class and the target are 1"),
        ({"attacked": 2}, "attacked has no meaning for the classification objective"),
        ({"objective": "poisoning", "target": -1}, "target is -1"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    settings: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        make(Objective, config_from(settings))


def test_poisoning_attacks_0_as_1_unless_told_otherwise() -> None:
    assert make(Objective, config_from({"objective": "poisoning"})) == dd.Poisoning(0, 1)


def test_the_users_words_run_code_and_a_files_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my_loss.py").write_text(OWN)
    Path("recipe.yaml").write_text("objective: my_loss.py:halved\nmodel: linear\n")
    flags = ["--iterations", "1", "--test-networks", "1", "--quiet", "--run", "run"]
    assert main(["distill", "recipe.yaml", *flags]) == 2
    assert "--objective my_loss.py:halved" in capsys.readouterr().err
    assert not Path("run").exists()
    assert main(["distill", "recipe.yaml", *flags, "--objective", "my_loss.py:halved"]) == 0
    assert dd.load("run/distilled.safetensors").objective.text == "my_loss.py:halved"
    assert main(["resume", "run", "--iterations", "2", "--quiet"]) == 2
    assert "name it yourself: --objective" in capsys.readouterr().err
    resume = ["resume", "run", "--iterations", "2", "--quiet", "--objective", "my_loss.py:halved"]
    assert main(resume) == 0
    assert main(["distill", "--objective", "my_loss.py:haved"]) == 2
    assert "Did you mean 'halved'?" in capsys.readouterr().err
