"""Artefacts that come with the package."""

from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    "name",
    [
        "mnist-fixed-10",
        "mnist-fixed-10-best",
        "mnist-fixed-100-best",
        pytest.param("mnist-random-100", marks=pytest.mark.slow),
    ],
)
def test_what_they_claim_holds(name: str, data_dir: Path) -> None:
    assert run("verify", name, "--data-dir", str(data_dir)) == 0
