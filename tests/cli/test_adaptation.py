"""The table of domain adaptation as a user asks for it: which source, and which pool."""

from pathlib import Path

import numpy as np
import pytest
import torch

import datadistill as dd
from datadistill.cli.evaluate import Evaluate, source_data
from datadistill.cli.main import INTERRUPTED, main


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two pools trained on digits, and images of an .npz file distilled for one network."""
    folder = tmp_path_factory.mktemp("adaptation")
    train, test = dd.data.load("digits")
    for name, seed in (("pool", 0), ("other", 1)):
        settings = {"networks": 2, "held_out": 1, "epochs": 1, "seed": seed}
        dd.pretrain(train, dd.models.MLP(hidden=4), folder / name, **settings)  # pyright: ignore[reportArgumentType]
    arrays = {
        f"{split}_{what}": getattr(data, what)[:300].numpy()
        for split, data in (("train", train), ("test", test))
        for what in ("inputs", "labels")
    }
    arrays = {n: 255 - a if n.endswith("inputs") else a for n, a in arrays.items()}
    np.savez(folder / "negative.npz", **arrays)  # pyright: ignore[reportArgumentType]
    negative, _ = dd.data.load(folder / "negative.npz")
    fixed = dd.Pool(folder / "pool").fixed(1)
    made = dd.distill(negative, dd.models.MLP(hidden=4), initialization=fixed, iterations=1)
    made.save(folder / "made.safetensors")
    return folder


def test_the_source_is_what_the_pool_was_trained_on_unless_it_is_the_target(folder: Path) -> None:
    distilled, pool = dd.load(folder / "made.safetensors"), dd.Pool(folder / "pool")
    choice = Evaluate(folder / "made.safetensors")
    source = source_data(distilled, pool, "negative", choice)
    assert source is not None
    assert source.name == "digits"
    assert torch.equal(source.labels, dd.data.load("digits")[0].labels)
    assert source_data(distilled, pool, "digits", choice) is None


def test_a_pool_that_the_network_is_not_from_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    asked = ["evaluate", "made.safetensors", "--data", "negative.npz", "--baselines"]
    assert main([*asked, "--pool", "other"]) == 2
    assert "is not number 1 of other" in capsys.readouterr().err


def test_baselines_see_the_augmentation_that_distillation_saw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    seen: list[object] = []

    def table(distilled: object, train: dd.LabelledData, *rest: object, **settings: object) -> None:
        seen.append(train.augmentation)
        raise KeyboardInterrupt

    monkeypatch.setattr("datadistill.tables.baseline_table", table)
    for augment in ("augment", "no-augment"):
        quick = ["--model", "linear", "--iterations", "1", "--test-networks", "1"]
        asked = ["distill", *quick, f"--{augment}", "--run", augment, "--quiet"]
        assert main(asked) == 0
        assert main(["evaluate", augment, "--baselines"]) == INTERRUPTED
    assert seen == [dd.data.Affine(), None]
