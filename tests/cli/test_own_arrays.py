"""Float images in an .npz file of the user's own, from distillation to verification."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import datadistill as dd
from tests.cli.helpers import run

QUICK = ["--iterations", "2", "--batch-size", "16", "--networks", "1", "--test-networks", "2"]
DISTILL = ["distill", "--model", "linear", "--processes", "1", "--quiet", *QUICK, "--run", "run"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Digits as floats, in every order of axes that users have."""
    monkeypatch.chdir(tmp_path)
    files: dict[str, dict[str, Any]] = {name: {} for name in ("first", "none", "last", "large")}
    for split, data in zip(("train", "test"), dd.data.load("digits", size=8), strict=True):
        images = np.asarray(data.inputs)[:100] / 255
        files["first"][f"{split}_inputs"] = images
        files["none"][f"{split}_inputs"] = images[:, 0]
        files["last"][f"{split}_inputs"] = images.transpose(0, 2, 3, 1)
        files["large"][f"{split}_inputs"] = images.repeat(2, 2).repeat(2, 3)
        for arrays in files.values():
            arrays[f"{split}_labels"] = data.labels.numpy()[:100]
    for name, arrays in files.items():
        np.savez(f"{name}.npz", **arrays)


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert run(*arguments) == 2
    return capsys.readouterr().err.replace("\n", " ")


@pytest.mark.parametrize("words", [["first.npz"], ["none.npz", "--channels", "1"]])
def test_a_run_is_evaluated_and_verified_on_the_images_it_is_of(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*DISTILL, "--data", *words) == 0
    claim = str(dd.load("run/distilled.safetensors").claim)
    capsys.readouterr()
    assert run("evaluate", "run", "--data", words[0], "--networks", "2") == 0
    assert capsys.readouterr().out.strip() == claim
    assert run("verify", "run", "--data", words[0]) == 0
    other = "none.npz" if words[0] == "first.npz" else "first.npz"
    capsys.readouterr()
    assert run("evaluate", "run", "--data", other, "--networks", "2") == 0
    assert capsys.readouterr().out.split(" on ")[0] == claim.split(" on ")[0], "the same pixels"


def test_what_cannot_be_told_or_done_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert "set channels to 1" in refusal(capsys, *DISTILL, "--data", "none.npz")
    assert "transpose(0, 3, 1, 2)" in refusal(capsys, *DISTILL, "--data", "last.npz")
    assert run(*DISTILL, "--data", "first.npz") == 0
    assert "--data PATH" in refusal(capsys, "evaluate", "run/distilled.safetensors")
    assert "--data PATH" in refusal(capsys, "verify", "run/distilled.safetensors")
    said = refusal(capsys, "evaluate", "run", "--data", "large.npz")
    assert "shape (1, 16, 16)" in said
    assert "size 8 and channels 1" in said


def test_pixels_mean_the_same_whatever_statistics_the_data_have(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The artefact's own normalization is used, not that of the data that are evaluated."""
    for split, seed in (("dark", 4), ("light", 1)):
        arrays: dict[str, Any] = {}
        for data in dd.data.load("digits", size=8):
            arrays[f"{data.split}_inputs"] = np.asarray(data.inputs)[:100]
            arrays[f"{data.split}_labels"] = data.labels.numpy()[:100]
        arrays["train_inputs"] = arrays["train_inputs"] // seed
        np.savez(f"{split}.npz", **arrays)
    assert run(*DISTILL, "--data", "light.npz") == 0
    figures: list[str] = []
    for name in ("light", "dark"):
        capsys.readouterr()
        assert run("evaluate", "run", "--data", f"{name}.npz", "--networks", "2") == 0
        figures.append(capsys.readouterr().out.partition(" on ")[0])
    assert figures[0] == figures[1], "the test images are the same"


def test_classes_are_compared_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    for name, classes in (
        ("same", "0123456789"),
        ("turned", "9876543210"),
        ("other", "abcdefghij"),
    ):
        arrays: dict[str, Any] = {"class_names": np.array([*classes])}
        for data in dd.data.load("digits", size=8):
            labels = data.labels.numpy()[:100]
            arrays[f"{data.split}_inputs"] = np.asarray(data.inputs)[:100]
            arrays[f"{data.split}_labels"] = 9 - labels if name == "turned" else labels
        np.savez(f"{name}.npz", **arrays)
    assert run(*DISTILL, "--data", "same.npz") == 0
    claim = str(dd.load("run/distilled.safetensors").claim)
    capsys.readouterr()
    assert run("evaluate", "run", "--data", "turned.npz", "--networks", "2") == 0
    assert capsys.readouterr().out.partition(" on ")[0] == claim.partition(" on ")[0]
    said = refusal(capsys, "evaluate", "run", "--data", "other.npz")
    assert "class 'a', which is not one of 0, 1, 2" in said
    assert "same names in any order" in said


def test_warnings_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"{n * 100},{n % 2}" for n in range(40)]
    Path("wide.csv").write_text("\n".join(["x,label", *lines]))
    assert run(*DISTILL, "--data", "wide.csv") == 0
    said = capsys.readouterr().err
    assert said.startswith("warning: ")
    assert "wide.csv has columns with standard deviations" in said
    assert said.count("\n") == 1
