"""Distilled data in the formats of other software hold what they say."""

import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

import datadistill as dd
from datadistill.artefact.make import make
from datadistill.core.network import Network
from datadistill.errors import ConfigError, DataError, FileError
from tests.cli.helpers import run

STEPS, IMAGES, CLASSES = 2, 4, 2


def distilled_of(labels: Tensor, names: tuple[str, ...] | None = ("cat", "../dog")) -> Any:
    random = torch.Generator().manual_seed(3)
    inputs = 2 * torch.randn(STEPS, IMAGES, 1, 6, 6, generator=random)
    module = dd.models.Linear(size=6, classes=CLASSES)
    pixels = torch.zeros(4, 1, 6, 6, dtype=torch.uint8)
    norm = dd.data.Normalization((0.3,), (0.5,))
    data = dd.LabelledData(pixels, torch.arange(4) % 2, norm, names, name="pets | <b>")
    return make(
        dd.Steps(inputs, labels, torch.tensor([[0.1, 0.2], [0.3, 0.6]])),
        network=Network(module, inputs[0]),
        module=module,
        initialization=dd.RandomInit(),
        objective=dd.Classification(),
        rule=dd.GradientDescent(),
        data=data,
        configuration={},
    )


@pytest.fixture
def hard() -> dd.DistilledData:
    return distilled_of(torch.tensor([[0, 1, 0, 1], [1, 0, 1, 0]]))


@pytest.fixture
def soft() -> dd.DistilledData:
    return distilled_of(torch.softmax(torch.arange(16.0).reshape(2, 4, 2).sin(), -1))


def test_pictures_are_stretched_each_to_its_range(hard: dd.DistilledData, tmp_path: Path) -> None:
    dd.export(hard, tmp_path, "png")
    found = sorted(path.name for path in tmp_path.iterdir())
    assert len(found) == STEPS * IMAGES
    assert found[0] == "step-001-image-0001-cat.png"
    pixels = np.asarray(Image.open(tmp_path / found[0]))
    assert pixels.shape == (6, 6)
    assert (pixels.min(), pixels.max()) == (0, 255)


def test_an_image_folder_can_be_loaded_and_tells_what_is_lost(
    hard: dd.DistilledData, tmp_path: Path
) -> None:
    notes = dd.export(hard, tmp_path, "folder")
    assert any("clipped" in note for note in notes)
    assert {path.name for path in tmp_path.iterdir()} == {"cat", "1-_dog"}  # no way out of it
    train, test = dd.data.load(tmp_path, channels=1)
    assert len(train) + len(test) == STEPS * IMAGES
    first = np.asarray(Image.open(tmp_path / "cat" / "step-001-image-0001.png")) / 255
    assert np.abs(first - hard.images[0, 0, 0].clamp(0, 1).numpy()).max() <= 0.5 / 255 + 1e-6


def test_npz_holds_everything(soft: dd.DistilledData, tmp_path: Path) -> None:
    dd.export(soft, tmp_path, "npz")
    with np.load(tmp_path / "distilled.npz", allow_pickle=False) as found:
        assert np.array_equal(found["inputs"], soft.inputs.numpy())
        assert np.array_equal(found["images"], soft.images.numpy())
        assert np.array_equal(found["labels"], soft.labels.numpy())
        assert np.array_equal(found["learning_rates"], soft.learning_rates.numpy())
        assert [*found["class_names"]] == ["cat", "../dog"]
        assert (found["mean"], found["std"]) == (0.3, 0.5)


def test_npz_of_a_type_that_numpy_does_not_know(soft: dd.DistilledData, tmp_path: Path) -> None:
    tensors = (soft.inputs, soft.labels, soft.learning_rates)
    steps = dd.Steps(*(tensor.to(torch.bfloat16) for tensor in tensors))
    dd.export(replace(soft, steps=steps), tmp_path, "npz")
    with np.load(tmp_path / "distilled.npz", allow_pickle=False) as found:
        assert np.array_equal(found["inputs"], steps.inputs.float().numpy())


@pytest.mark.parametrize("kind", ["hard", "soft"])
def test_dd_ranking_gets_plain_tensors_that_come_back(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    distilled: dd.DistilledData = request.getfixturevalue(kind)
    dd.export(distilled, tmp_path, "dd-ranking")
    read = {p.stem: torch.load(p, weights_only=True) for p in tmp_path.iterdir()}
    assert torch.equal(read["images"], distilled.inputs.flatten(0, 1))
    assert torch.equal(read["labels"], distilled.labels.flatten(0, 1))
    assert float(read["lr"]) == pytest.approx(0.3)
    pixels = torch.zeros(4, 1, 6, 6, dtype=torch.uint8)
    real = dd.LabelledData(pixels, torch.arange(4) % 2, distilled.normalization)
    back = dd.import_images(
        tmp_path / "images.pt",
        tmp_path / "labels.pt",
        data=real,
        module=dd.models.Linear(size=6, classes=2),
        rate=tmp_path / "lr.pt",
    )
    assert torch.equal(back.inputs[0], distilled.inputs.flatten(0, 1))
    assert torch.equal(back.labels[0], distilled.labels.flatten(0, 1))


@pytest.mark.parametrize("kind", ["hard", "soft"])
def test_a_data_set_of_hugging_face_with_its_card(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    datasets: Any = pytest.importorskip("datasets")
    distilled: dd.DistilledData = request.getfixturevalue(kind)
    dd.export(distilled, tmp_path / "out", "hugging-face")
    parquet = str(tmp_path / "out" / "data" / "train-00000-of-00001.parquet")
    found = datasets.Dataset.from_parquet(parquet, cache_dir=str(tmp_path / "cache"))
    pixels = torch.tensor(found["pixels"])
    assert torch.equal(pixels, distilled.inputs.flatten(0, 1))
    assert found.features["label"].names == ["cat", "../dog"]
    assert found["step"][:] == [0] * IMAGES + [1] * IMAGES
    assert found[7]["learning_rates"] == pytest.approx([0.2, 0.6])
    assert found[0]["image"].size == (6, 6)
    assert ("soft_label" in found.features) == (kind == "soft")
    card = (tmp_path / "out" / "README.md").read_text()
    assert card.startswith("---\npretty_name:")
    assert "pets \\| \\<b\\>" in card


def test_hugging_face_without_its_package_says_what_to_install(
    hard: dd.DistilledData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(importlib.util.sys.modules, "datasets", None)  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(ConfigError, match=r"pip install 'datadistill\[datasets\]'"):
        dd.export(hard, tmp_path, "hugging-face")


def test_nothing_is_written_over(hard: dd.DistilledData, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(FileError, match="not an empty folder"):
        dd.export(hard, tmp_path, "npz")
    with pytest.raises(ConfigError, match="Did you mean 'npz'"):
        dd.export(hard, tmp_path, "npx")
    with pytest.raises(ConfigError, match="do not belong"):
        dd.export(hard, tmp_path / "new", "npz", model="lenet")


def test_what_is_no_image_is_refused(tmp_path: Path) -> None:
    inputs = torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
    module = dd.models.Linear(channels=5, size=1, classes=3)
    real = dd.data.as_data((inputs, torch.arange(3)))
    distilled = dd.distill(
        real, module, initialization=dd.FixedInit(), iterations=1, batch_size=3, validation=0.0
    )
    with pytest.raises(DataError, match="are not images"):
        dd.export(distilled, tmp_path, "png")
    dd.export(distilled, tmp_path, "npz")


def test_the_command_line(
    hard: dd.DistilledData, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hard.save(tmp_path / "pets.safetensors")
    assert run("export", str(tmp_path / "pets.safetensors"), "--format", "dd-ranking") == 0
    assert "written: " in capsys.readouterr().out
    assert (tmp_path / "pets-dd-ranking" / "images.pt").exists()
    assert run("export", str(tmp_path / "pets.safetensors"), "--format", "dd-ranking") == 1
    assert "not an empty folder" in capsys.readouterr().err
    assert run("export", str(tmp_path / "none.safetensors")) == 2
