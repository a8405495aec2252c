"""MATLAB's .mat files: what scipy reads, and sizes that lie."""

import struct
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse

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


def mat(shape: tuple[int, ...], data: bytes, claimed: int | None = None, name: str = "X") -> bytes:
    """A .mat file of one packed array, whose header may claim other sizes than it has."""
    inside = (
        element(6, struct.pack("<II", 9, 0))
        + element(5, struct.pack(f"<{len(shape)}i", *shape))
        + element(1, name.encode())
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


def test_big_endian_files_are_read(tmp_path: Path) -> None:
    numbers = np.arange(6, dtype=">i2").reshape(2, 3)
    inside = b"".join(
        struct.pack(">II", kind, len(content)) + content + bytes(-len(content) % 8)
        for kind, content in (
            (6, struct.pack(">II", 10, 0)),
            (5, struct.pack(">2i", 2, 3)),
            (1, b"X"),
            (3, numbers.tobytes(order="F")),
        )
    )
    header = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x01\0MI"
    (tmp_path / "a.mat").write_bytes(header + struct.pack(">II", 14, len(inside)) + inside)
    np.testing.assert_array_equal(read_mat(tmp_path / "a.mat", {"X": 12})["X"], numbers)


@pytest.mark.parametrize("packed", [True, False])
def test_other_kinds_of_arrays_are_skipped(packed: bool, tmp_path: Path) -> None:
    others = {
        "empty": np.empty((0, 0), object),
        "cell": np.array([1, "two"], object),
        "struct": {"a": {"b": 1}},
        "sparse": scipy.sparse.eye_array(3),
        "complex": np.zeros(3, complex),
    }
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {**others, "X": np.ones((2, 3)), "last": "text"}, do_compression=packed)
    assert list(read_mat(path, {"X": 10**6})) == ["X"]


@pytest.mark.parametrize(
    ("name", "what"), [("X", "longer than it says"), ("other", "no array called X")]
)
def test_a_bomb_is_not_unpacked(name: str, what: str, tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    path.write_bytes(mat((1000, 1000), bytes(10**8), 10**6, name))
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=what):
            read_mat(path, {"X": 10**7})
        assert tracemalloc.get_traced_memory()[1] < 20 * 10**6
    finally:
        tracemalloc.stop()


def test_a_name_as_large_as_memory_is_refused(tmp_path: Path) -> None:
    inside = (
        element(6, struct.pack("<II", 9, 0))
        + element(5, struct.pack("<2i", 1, 1))
        + struct.pack("<II", 1, 2**32 - 1)
    )
    packed = zlib.compress(struct.pack("<II", 14, len(inside)) + inside)
    header = b"MATLAB 5.0 MAT-file".ljust(124) + b"\0\x01IM"
    path = tmp_path / "a.mat"
    path.write_bytes(header + struct.pack("<II", 15, len(packed)) + packed)
    with pytest.raises(DataError, match="no valid header"):
        read_mat(path, {"X": 10**6})
