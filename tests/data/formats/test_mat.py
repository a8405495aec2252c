"""MATLAB's .mat files: what scipy reads, and sizes that lie."""

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from datadistill.data.formats.mat import read_mat
from datadistill.errors import DataError

from ..makers import pixels

MOST = {"X": 10**8, "y": 10**6}


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
        ((2**31 - 1, 2**31 - 1), 8, "should have 4611686014132420609 numbers"),
        ((-8, -1), 8, "has the shape"),
        ((-8, 1), 8, "has the shape"),
        ((2**30,), 2**30, "more than 1,000,000"),
        ((16,), 16, "is truncated"),
        ((8,), 2**32 - 1, "should have 8 numbers"),
        ((4,), 4, "longer than it says"),
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
