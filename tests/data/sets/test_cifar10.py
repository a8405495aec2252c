"""CIFAR-10's binary batches and their archive."""

import gzip
import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch

from datadistill.data import load
from datadistill.errors import DataError

from ..makers import cifar_batch, cifar_batches, cifar_tar, make_cifar10, make_cifar10_archive

ARCHIVE = "cifar-10-binary.tar.gz"


def test_records_are_a_label_and_three_planes(tmp_path: Path) -> None:
    make_cifar10(tmp_path / "cifar10")
    train, test = load("cifar10", tmp_path)
    assert (len(train), len(test)) == (50, 10)
    record = np.frombuffer(cifar_batch(10, seed=1), np.uint8).reshape(10, 3073)[3]
    assert isinstance(train.inputs, torch.Tensor)
    assert train.inputs.dtype == torch.uint8
    assert train.inputs[13].flatten().tolist() == record[1:].tolist()
    assert int(train.labels[13]) == record[0] == 3
    assert train.class_names is not None
    assert train.class_names[3] == "cat"


def test_the_archive_need_not_be_unpacked(tmp_path: Path) -> None:
    make_cifar10_archive(tmp_path / "packed" / "cifar10")
    folder = tmp_path / "flat" / "cifar10"
    folder.mkdir(parents=True)
    for name, content in cifar_batches(2).items():
        (folder / name).write_bytes(content)
    for packed, flat in zip(
        load("cifar10", tmp_path / "packed"), load("cifar10", tmp_path / "flat"), strict=True
    ):
        assert isinstance(packed.inputs, torch.Tensor)
        assert isinstance(flat.inputs, torch.Tensor)
        assert torch.equal(packed.inputs, flat.inputs)
        assert torch.equal(packed.labels, flat.labels)
    assert [path.name for path in (tmp_path / "packed" / "cifar10").iterdir()] == [ARCHIVE]


@pytest.mark.parametrize("name", ["cifar-10-batches-py", "cifar-10-python.tar.gz"])
def test_pickles_are_refused_and_the_other_version_named(name: str, tmp_path: Path) -> None:
    (tmp_path / "cifar10" / name).mkdir(parents=True)
    with pytest.raises(DataError, match="pickles") as caught:
        load("cifar10", tmp_path)
    assert "binary version" in caught.value.remedy


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "does not consist of records"),
        (cifar_batch(10)[:-1], "does not consist of records"),
        (b"\x0a" + cifar_batch(10)[1:], "label 10"),
        (bytes(10_001 * 3073), "the most possible"),
    ],
)
def test_damaged_batches_are_named(content: bytes, what: str, tmp_path: Path) -> None:
    folder = make_cifar10(tmp_path / "cifar10") / "cifar-10-batches-bin"
    (folder / "data_batch_4.bin").write_bytes(content)
    with pytest.raises(DataError, match=what) as caught:
        load("cifar10", tmp_path)
    assert "data_batch_4.bin" in caught.value.what


def archive(folder: Path, content: bytes) -> Path:
    (folder / "cifar10").mkdir()
    (folder / "cifar10" / ARCHIVE).write_bytes(gzip.compress(content, compresslevel=1))
    return folder


def test_members_that_climb_out_are_never_looked_at(tmp_path: Path) -> None:
    content = cifar_tar(cifar_batches(2), prefix="../cifar-10-batches-bin/")
    with pytest.raises(DataError, match=r"does not contain cifar-10-batches-bin/data_batch_1\.bin"):
        load("cifar10", archive(tmp_path, content))
    assert [path.name for path in tmp_path.iterdir()] == ["cifar10"]


def test_links_are_no_batches(tmp_path: Path) -> None:
    buffer = io.BytesIO(cifar_tar(cifar_batches(2)))
    with tarfile.open(fileobj=buffer, mode="a") as tar:
        link = tarfile.TarInfo("cifar-10-batches-bin/test_batch.bin")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    assert len(load("cifar10", archive(tmp_path, buffer.getvalue()))[1]) == 2


@pytest.mark.parametrize("name", ["unrelated.bin", "cifar-10-batches-bin/data_batch_1.bin"])
def test_a_bomb_is_not_unpacked_further_than_cifar10_goes(name: str, tmp_path: Path) -> None:
    (tmp_path / "cifar10").mkdir()
    info = tarfile.TarInfo(name)
    info.size = 10**10
    bomb = gzip.compress(info.tobuf()) + gzip.compress(bytes(10**7)) * 1000
    (tmp_path / "cifar10" / ARCHIVE).write_bytes(bomb)
    with pytest.raises(
        DataError, match=r"more bytes than CIFAR-10 has|does not consist of records"
    ):
        load("cifar10", tmp_path)


def test_a_truncated_archive_is_named(tmp_path: Path) -> None:
    folder = make_cifar10_archive(tmp_path / "cifar10")
    content = (folder / ARCHIVE).read_bytes()
    (folder / ARCHIVE).write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match=ARCHIVE):
        load("cifar10", tmp_path)
