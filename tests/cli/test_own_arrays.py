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
    assert "--data first.npz" in refusal(capsys, "evaluate", "run")
    assert "--data first.npz" in refusal(capsys, "verify", "run")
    said = refusal(capsys, "evaluate", "run", "--data", "large.npz")
    assert "shape (1, 16, 16)" in said
    assert "size 8 and channels 1" in said
