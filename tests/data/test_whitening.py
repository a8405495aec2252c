"""ZCA whitening: fitted to training images, undone for pictures, and part of the artefact."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import datadistill as dd
from datadistill.artefact.container import read_container, write_container
from datadistill.data.whitening import EPSILON, Whitening
from datadistill.errors import ArtefactError, DataError

SETTINGS: dict[str, Any] = {"iterations": 2, "batch_size": 50, "initialization": "fixed"}


@pytest.fixture(scope="module")
def splits() -> tuple[dd.LabelledData, dd.LabelledData]:
    return dd.data.load("digits", size=8, normalization="zca")


@pytest.fixture(scope="module")
def artefact(
    splits: tuple[dd.LabelledData, dd.LabelledData], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    path = tmp_path_factory.mktemp("white") / "a.safetensors"
    train, test = splits
    dd.distill(train, dd.models.Linear(size=8), test=test, **SETTINGS).save(path)
    return path


def test_whitened_images_have_hardly_any_correlation(
    splits: tuple[dd.LabelledData, dd.LabelledData],
) -> None:
    plain = dd.data.load("digits", size=8)[0].tensors(torch.float64)[0].flatten(1)
    white = splits[0].tensors(torch.float64)[0].flatten(1)
    variances, directions = torch.linalg.eigh(torch.cov(plain.T, correction=0))
    # (x − m) U (Λ + ε)^(−½) Uᵀ, but for directions that hardly vary.
    expected = ((plain - plain.mean(0)) @ directions) / (variances + EPSILON).sqrt() @ directions.T
    assert float((white - expected).norm() / expected.norm()) < 0.01
    assert torch.cov(white.T).fill_diagonal_(0).abs().max() < 0.3
    assert torch.cov(plain.T).fill_diagonal_(0).abs().max() > 0.6


def test_whitening_can_be_undone(splits: tuple[dd.LabelledData, dd.LabelledData]) -> None:
    norm = splits[0].normalization
    assert norm is not None
    pixels = torch.rand(2, 3, 1, 8, 8, dtype=torch.float64)
    torch.testing.assert_close(norm.undo(norm.apply(pixels)), pixels, rtol=0, atol=1e-5)


def test_it_travels_in_the_artefact(
    splits: tuple[dd.LabelledData, dd.LabelledData], artefact: Path
) -> None:
    again, (_, test) = dd.load(artefact), splits
    assert again.header.schema_version == 3
    assert again.normalization == test.normalization
    assert again.whitening is not None
    # Real data in any form are whitened alike: by name, as bytes, or whitened already.
    expected = dd.evaluate(again, test, device="cpu").values
    assert dd.evaluate(again, "digits", device="cpu").values == expected
    assert dd.evaluate(again, (test.inputs, test.labels), device="cpu").values == expected
    other = dd.data.load("digits", size=8)[1]
    assert dd.evaluate(again, other, device="cpu").values == expected
    assert dd.verify(again, other).holds
    images = again.normalization.undo(again.inputs) if again.normalization else None
    assert images is not None
    assert torch.equal(again.images, images)
    torch.testing.assert_close(again.train()(test.tensors()[0][:2]).shape, torch.Size([2, 10]))


def test_runs_are_whitened_by_a_setting_and_resume(tmp_path: Path) -> None:
    settings: dict[str, Any] = {**SETTINGS, "size": 8, "normalization": "zca", "iterations": 4}

    def stop(told: dd.Progress) -> None:
        if told.stage == "distilling" and told.done == 2:
            raise KeyboardInterrupt

    whole = dd.distill("digits", "linear", run=tmp_path / "whole", **settings)
    with pytest.raises(KeyboardInterrupt):
        dd.distill("digits", "linear", run=tmp_path / "stopped", progress=stop, **settings)
    resumed = dd.distill("digits", "linear", run=tmp_path / "stopped", **settings)
    assert resumed == whole
    assert whole.whitening is not None
    assert dd.load(tmp_path / "whole") == whole


def test_what_cannot_be_whitened_is_refused() -> None:
    with pytest.raises(DataError, match=r"Whitening images of 16,384 numbers would take too long"):
        Whitening.fitted([torch.zeros(1, 1, 128, 128)])
    white = dd.data.load("digits", size=8, normalization="zca")[0].normalization
    assert white is not None
    with pytest.raises(DataError, match="a whitening for images of 64 numbers"):
        dd.LabelledData(torch.zeros(2, 1, 9, 9, dtype=torch.uint8), torch.arange(2), white)
    with pytest.raises(DataError, match=r"Images of 3 channel\(s\) cannot be whitened"):
        white.with_channels(3)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("mean", torch.zeros(63), "does not fit images of shape"),
        ("mean", torch.full((64,), torch.nan), "whitening/mean is out of range"),
        ("directions", torch.zeros(64, 10**4), "does not fit"),
        ("directions", torch.full((64, 1), 2.0), "whitening/directions is out of range"),
        ("variances", torch.full((1,), -1.0), "variance of its whitening is negative"),
        ("variances", torch.full((1,), torch.inf), "whitening/variances is out of range"),
        ("variances", torch.zeros(1).double(), "whitening/variances is out of range"),
        ("more", torch.zeros(1), "does not fit"),
    ],
)
def test_a_whitening_that_makes_no_sense_is_refused(
    artefact: Path, tmp_path: Path, name: str, value: Tensor, message: str
) -> None:
    tensors, header = read_container(artefact)
    if name != "more":
        tensors["whitening/directions"] = tensors["whitening/directions"][:, :1].contiguous()
        tensors["whitening/variances"] = tensors["whitening/variances"][:1]
        write_container(tmp_path / "sound.safetensors", tensors, header)
        dd.load(tmp_path / "sound.safetensors")
    tensors[f"whitening/{name}"] = value
    write_container(tmp_path / "a.safetensors", tensors, header)
    with pytest.raises(ArtefactError, match=message):
        dd.load(tmp_path / "a.safetensors")
