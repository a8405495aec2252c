"""SVHN's .mat files."""

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import torch

from datadistill.data import load
from datadistill.data.mat import read_mat
from datadistill.errors import DataError

from .makers import make_svhn, pixels, svhn_arrays

MOST = {"X": 10**8, "y": 10**6}


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


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize(
    "array",
    [
        pixels(3, 4, 5),
        np.arange(6).reshape(2, 3),
        np.linspace(0, 1, 7),
        np.arange(5, dtype=np.int16),
        np.array([[1.5]], np.float32),
        np.zeros((0, 3)),
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_arrays_are_those_that_scipy_wrote(array: np.ndarray, packed: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {"other": "text", "X": array, "z": {"a": 1}}, do_compression=packed)
    expected = scipy.io.loadmat(path)["X"]
    found = read_mat(path, {"X": 10**6})["X"]
    np.testing.assert_array_equal(found, expected)
    assert found.dtype.kind == expected.dtype.kind


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


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "no MATLAB header"),
        (b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(512) + b"\x89HDF\r\n\x1a\n", "7.3"),
        (b"\x89HDF\r\n\x1a\n" + bytes(100), "7.3"),
        (b"garbage" * 100, "no MATLAB header"),
    ],
)
def test_files_of_another_kind_are_refused(content: bytes, what: str, tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    path.write_bytes(content)
    with pytest.raises(DataError, match=what):
        read_mat(path, MOST)


def element(kind: int, content: bytes) -> bytes:
    return struct.pack("<II", kind, len(content)) + content + bytes(-len(content) % 8)


def mat(shape: tuple[int, ...], data: bytes, claimed: int | None = None) -> bytes:
    """A .mat file of one packed array X, whose header may claim other sizes than it has."""
    inside = (
        element(6, struct.pack("<II", 9, 0))
        + element(5, struct.pack(f"<{len(shape)}i", *shape))
        + element(1, b"X")
        + struct.pack("<II", 2, len(data) if claimed is None else claimed)
        + data
    )
    packed = zlib.compress(struct.pack("<II", 14, len(inside)) + inside, 1)
    header = b"MATLAB 5.0 MAT-file".ljust(124) + b"\0\x01IM"
    return header + struct.pack("<II", 15, len(packed)) + packed


@pytest.mark.parametrize(
    ("shape", "claimed", "what"),
    [
        ((2**31 - 1, 2**31 - 1), 8, "promises 4611686014132420609 numbers"),
        ((-8, -1), 8, "has the shape"),
        ((-8, 1), 8, "has the shape"),
        ((2**30,), 2**30, "is the most it can have"),
        ((16,), 16, "ends too early"),
        ((8,), 2**32 - 1, "promises 8 numbers"),
        ((4,), 4, "does not end where it should|can be read"),
    ],
)
def test_sizes_that_lie_are_refused_before_memory_is_taken(
    shape: tuple[int, ...], claimed: int, what: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.mat"
    path.write_bytes(mat(shape, bytes(8) if claimed != 4 else bytes(4000), claimed))
    with pytest.raises(DataError, match=what):
        read_mat(path, {"X": 10**6})


def test_an_array_that_comes_again_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    once = mat((8, 1), bytes(8))
    path.write_bytes(once + once[128:] * 50)
    assert read_mat(path, {"X": 10**6})["X"].shape == (8, 1)
    path.write_bytes(once + once[128:] * 500)
    with pytest.raises(DataError, match="more than 100 arrays"):
        read_mat(path, {"X": 10**6})


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    make_svhn(tmp_path / "svhn")
    path = tmp_path / "svhn" / "train_32x32.mat"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match="ends too early"):
        load("svhn", tmp_path)
