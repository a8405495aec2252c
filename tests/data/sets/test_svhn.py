"""SVHN: its arrays, and others in their place."""

from pathlib import Path

import numpy as np
import pytest
import scipy.io
import torch

from datadistill.data import load
from datadistill.errors import DataError

from ..makers import make_svhn, pixels, svhn_arrays


@pytest.mark.parametrize("packed", [True, False])
def test_images_stand_upright_and_ten_is_zero(packed: bool, tmp_path: Path) -> None:
    make_svhn(tmp_path / "svhn", packed=packed)
    _, test = load("svhn", tmp_path)
    pictures = svhn_arrays(10)["X"]
    assert isinstance(test.inputs, torch.Tensor)
    for i in range(10):
        assert np.array_equal(test.inputs[i].permute(1, 2, 0).numpy(), pictures[..., i])
    assert test.labels.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]


def test_svhn_gray_is_never_called_svhn(tmp_path: Path) -> None:
    make_svhn(tmp_path / "svhn-gray")
    train, test = load("svhn-gray", tmp_path)
    assert train.name == test.name == "svhn-gray"


def rewrite(folder: Path, **changes: np.ndarray) -> None:
    make_svhn(folder / "svhn")
    scipy.io.savemat(folder / "svhn" / "test_32x32.mat", {**svhn_arrays(10), **changes})


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"X": pixels(32, 32, 10)}, "not bytes"),
        ({"X": pixels(10, 3, 32, 32)}, "not bytes"),
        ({"X": pixels(32, 32, 3, 10).astype(float)}, "not bytes"),
        ({"X": np.array("text")}, "not an array of real numbers"),
        ({"X": np.zeros((2, 2), complex)}, "not an array of real numbers"),
        ({"y": np.arange(9)}, "one label"),
        ({"y": np.arange(10)}, "one label"),  # 0 is written as 10
        ({"y": np.full(10, 1.5)}, "one label"),
    ],
)
def test_other_arrays_are_refused(
    changes: dict[str, np.ndarray], what: str, tmp_path: Path
) -> None:
    rewrite(tmp_path, **changes)
    with pytest.raises(DataError, match=what) as caught:
        load("svhn", tmp_path)
    assert "test_32x32.mat" in caught.value.what


def test_a_missing_array_is_named(tmp_path: Path) -> None:
    make_svhn(tmp_path / "svhn")
    scipy.io.savemat(tmp_path / "svhn" / "train_32x32.mat", {"X": svhn_arrays(10)["X"]})
    with pytest.raises(DataError, match="no array called y"):
        load("svhn", tmp_path)


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    make_svhn(tmp_path / "svhn")
    path = tmp_path / "svhn" / "train_32x32.mat"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match="is truncated"):
        load("svhn", tmp_path)
