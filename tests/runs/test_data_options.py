"""What is learned and how: labels, starts and parametrisations."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

import datadistill as dd
from datadistill.errors import ConfigError
from datadistill.runs.config import config_from
from datadistill.runs.preparation import prepare
from tests.runs.helpers import DATA, go


@pytest.mark.parametrize("start", ["k-means", "average"])
def test_few_images_start_as_mixtures_of_the_images_of_their_classes(start: str) -> None:
    train, _ = dd.data.load("digits")

    def inputs(**settings: Any) -> torch.Tensor:
        config = config_from({"start": start, "labels": "soft", **settings})
        made = prepare(config, train, dd.models.Linear())
        return made.images(made.start().distiller).inputs

    every = inputs(images_per_class=1)[0]
    few = inputs(images_per_step=5)[0]
    torch.testing.assert_close(few, (every[:5] + every[5:]) / 2)
    assert torch.equal(inputs(images_per_step=3, steps=3).flatten(0, 1)[:9], mixed(every, 9))


def mixed(every: torch.Tensor, images: int) -> torch.Tensor:
    first = (every[0] + every[9]) / 2
    return torch.cat([first[None], every[1:images]])


def test_fewer_images_than_classes_need_labels_that_are_learned() -> None:
    with pytest.raises(
        ConfigError, match=r"4 distilled images cannot have one label for each of 10"
    ):
        go(None, images_per_step=4, steps=1)


def test_labels_have_an_outer_learning_rate_of_their_own() -> None:
    def moved(**settings: Any) -> float:
        made = go(None, labels="soft", iterations=1, averaging=0, **settings)
        hard = torch.eye(10).expand(2, 10, 10)
        return float((made.labels - hard).abs().max())

    assert moved(labels_lr=0.01) == pytest.approx(0.01, rel=1e-3)
    assert moved() == pytest.approx(1.0, rel=1e-3), "outer_lr"


def test_a_file_stores_parameters_in_place_of_the_images(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"iterations": 1, "validation": 0, "networks": 1}
    bytes_of: dict[str, int] = {}
    for name in ("plain", "low-resolution", "bases"):
        made = dd.distill(DATA, dd.models.Linear(), parametrisation=name, **settings)
        made.save(tmp_path / name)
        again = dd.load(tmp_path / name)
        assert torch.equal(again.inputs, made.inputs)
        assert again.header.schema_version == (2 if name == "plain" else 3)
        assert again.stored_bytes == made.stored_bytes
        bytes_of[name] = made.stored_bytes
    rest = 10 * 8 + 3 * 4  # labels and learning rates
    assert bytes_of["plain"] == 10 * 28 * 28 * 4 + rest
    assert bytes_of["low-resolution"] == 10 * 14 * 14 * 4 + rest
    assert bytes_of["bases"] == 10 * 28 * 28 * 4 + 10 * 10 * 4 + rest
    assert (tmp_path / "low-resolution").stat().st_size < (tmp_path / "plain").stat().st_size / 2


def test_a_users_own_parametrisation_is_stored_as_images(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"iterations": 1, "validation": 0, "networks": 1}
    made = dd.distill(DATA, dd.models.Linear(), parametrisation=Halved(), **settings)
    made.save(tmp_path / "own")
    again = dd.load(tmp_path / "own")
    assert torch.equal(again.inputs, made.inputs)
    assert not again.stored


@dataclass(frozen=True)
class Halved(dd.LowResolution):
    """A user's own."""

    def inputs(self, parameters: dict[str, torch.Tensor]) -> torch.Tensor:
        return super().inputs(parameters) / 2
