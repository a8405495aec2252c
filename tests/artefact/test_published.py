"""Artefacts that come with the package."""

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

import datadistill as dd
from datadistill.artefact.published import FOLDER, published_names
from datadistill.errors import ArtefactError

from ..cli.helpers import run


def test_each_is_small_and_has_a_claim_a_picture_and_a_card() -> None:
    names = published_names()
    assert 2 <= len(names) <= 10
    for name in names:
        distilled = dd.load(name)
        assert (FOLDER / f"{name}.safetensors").stat().st_size < 2**20
        assert distilled.claim is not None
        assert distilled.claim.split == "test"
        assert (FOLDER / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        card = (FOLDER / f"{name}.md").read_text("utf-8")
        assert f'dd.load("{name}")' in card
        assert str(distilled.claim) in card


def test_a_file_of_the_same_name_goes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = published_names()[0]
    assert dd.load(name) == dd.load(FOLDER / f"{name}.safetensors")
    Path(name).write_bytes(b"another file")
    with pytest.raises(ArtefactError):
        dd.load(name)


def test_an_unknown_name_is_told_with_the_nearest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = published_names()[0]
    with pytest.raises(ArtefactError, match=f"Did you mean '{name}'"):
        dd.load(name + "x")


def test_commands_find_them_and_write_nothing_into_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(FOLDER.iterdir())
    name = published_names()[0]
    assert run("artefacts") == 0
    assert name in capsys.readouterr().out
    assert run("train", name) == 0
    assert run("export", name, "--format", "npz") == 0
    assert run("report", name, "--no-measure") == 0
    found = sorted(path.name for path in tmp_path.iterdir())
    assert found == [f"{name}-npz", f"{name}-trained.safetensors", f"{name}.html"]
    assert sorted(FOLDER.iterdir()) == before


def test_robust_images_train_an_unseen_network_in_an_ordinary_loop(data_dir: Path) -> None:
    distilled, (_, test) = dd.load("mnist-robust-100"), dd.data.load("mnist", data_dir=data_dir)
    torch.manual_seed(0)
    features = nn.Sequential(nn.Conv2d(1, 16, 5), nn.ReLU(), nn.MaxPool2d(4), nn.Flatten())
    network = nn.Sequential(features, nn.Linear(576, 10))
    optimizer = torch.optim.Adam(network.parameters())
    for _ in range(30):
        for images, labels in DataLoader(distilled, batch_size=10, shuffle=True):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(images), labels).backward()
            optimizer.step()
    inputs, labels = test.tensors()
    with torch.no_grad():
        right = network(inputs).argmax(1) == labels
    assert right.float().mean() > 0.9


@pytest.mark.parametrize(
    "name",
    [
        "mnist-fixed-10",
        "mnist-fixed-10-best",
        "mnist-fixed-100-best",
        pytest.param("mnist-robust-100", marks=pytest.mark.slow),
        pytest.param("mnist-random-100", marks=pytest.mark.slow),
    ],
)
def test_what_they_claim_holds(name: str, data_dir: Path) -> None:
    assert run("verify", name, "--data-dir", str(data_dir)) == 0
