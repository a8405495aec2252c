"""MNIST's idx files, packed or not, sound or not."""

import gzip
import struct
from pathlib import Path

import pytest
import torch

from datadistill.data import load
from datadistill.data.sets.fashion_mnist import CLASSES
from datadistill.errors import DataError

from ..makers import idx, make_mnist, pixels

IMAGES = "t10k-images-idx3-ubyte"


def test_packed_and_plain_files_give_the_same(tmp_path: Path) -> None:
    make_mnist(tmp_path / "packed" / "mnist")
    make_mnist(tmp_path / "plain" / "mnist", packed=False)
    for packed, plain in zip(
        load("mnist", tmp_path / "packed"), load("mnist", tmp_path / "plain"), strict=True
    ):
        assert isinstance(packed.inputs, torch.Tensor)
        assert isinstance(plain.inputs, torch.Tensor)
        assert torch.equal(packed.inputs, plain.inputs)
        assert torch.equal(packed.labels, plain.labels)


def test_images_and_labels_are_those_of_the_files(tmp_path: Path) -> None:
    make_mnist(tmp_path / "mnist")
    _, test = load("mnist", tmp_path)
    assert isinstance(test.inputs, torch.Tensor)
    assert test.inputs.dtype == torch.uint8
    assert torch.equal(test.inputs[:, 0], torch.from_numpy(pixels(10, 28, 28, seed=10)))
    assert test.labels.tolist() == list(range(10))


def test_fashion_mnist_has_its_own_names_and_normalisation(tmp_path: Path) -> None:
    make_mnist(tmp_path / "fashion-mnist")
    train, _ = load("fashion-mnist", tmp_path)
    assert train.class_names == CLASSES
    assert train.normalization is not None
    assert train.normalization.mean == (0.2860,)


def test_files_packed_in_parts_are_read_to_the_end(tmp_path: Path) -> None:
    folder = make_mnist(tmp_path / "mnist", packed=False)
    content = (folder / IMAGES).read_bytes()
    (folder / IMAGES).unlink()
    parts = gzip.compress(content[:100]) + gzip.compress(content[100:])
    (folder / f"{IMAGES}.gz").write_bytes(parts)
    assert len(load("mnist", tmp_path)[1]) == 10


def damage(folder: Path, content: bytes, packed: bool = False) -> None:
    make_mnist(folder / "mnist", packed=False)
    (folder / "mnist" / IMAGES).unlink()
    name = f"{IMAGES}.gz" if packed else IMAGES
    (folder / "mnist" / name).write_bytes(content)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "not an idx file"),
        (b"\0\0\x08", "not an idx file"),
        (b"\0\0\x0d\x03" + bytes(12), "not an idx file"),  # floats
        (b"\0\0\x08\xff" + bytes(50), "not an idx file"),
        (struct.pack(">BBBB3I", 0, 0, 8, 3, 10, 28, 28), "should have 7840 bytes .* but has 0"),
        (struct.pack(">BBBB3I", 0, 0, 8, 3, *[2**32 - 1] * 3), "should have 79228162458924105"),
        (idx(pixels(10, 28, 28)) + b"x", "has 7841"),
        (idx(pixels(10, 27, 28)), "not mnist"),
        (idx(pixels(9, 28, 28)), "not mnist"),
        (idx(pixels(10)), "not mnist"),
    ],
)
def test_damaged_idx_files_are_named(content: bytes, what: str, tmp_path: Path) -> None:
    damage(tmp_path, content)
    with pytest.raises(DataError, match=what) as caught:
        load("mnist", tmp_path)
    assert IMAGES in caught.value.what
    assert "again" in caught.value.remedy


@pytest.mark.parametrize("kept", [0, 5, 12, 100, -1])
def test_truncated_gzip_files_are_named(kept: int, tmp_path: Path) -> None:
    damage(tmp_path, gzip.compress(idx(pixels(10, 28, 28)))[:kept], packed=True)
    with pytest.raises(DataError, match=f"{IMAGES}.gz"):
        load("mnist", tmp_path)


def test_a_wrong_checksum_is_noticed(tmp_path: Path) -> None:
    content = bytearray(gzip.compress(idx(pixels(10, 28, 28))))
    content[-6] ^= 1
    damage(tmp_path, bytes(content), packed=True)
    with pytest.raises(DataError, match="cannot be read"):
        load("mnist", tmp_path)


def test_a_bomb_is_not_unpacked_further_than_mnist_goes(tmp_path: Path) -> None:
    header = gzip.compress(struct.pack(">BBBB3I", 0, 0, 8, 3, 10**10 // 784, 28, 28))
    damage(tmp_path, header + gzip.compress(bytes(10**7)) * 1000, packed=True)  # 10 GB
    resource = pytest.importorskip("resource")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DataError, match="the most possible"):
        load("mnist", tmp_path)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before  # kilobytes
    assert grown < 300_000


def test_labels_beyond_nine_are_refused(tmp_path: Path) -> None:
    folder = make_mnist(tmp_path / "mnist", packed=False)
    (folder / "t10k-labels-idx1-ubyte").write_bytes(idx(pixels(10)))
    with pytest.raises(DataError, match="has a label"):
        load("mnist", tmp_path)
