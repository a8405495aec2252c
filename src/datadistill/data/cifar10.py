"""CIFAR-10: 50,000 training and 10,000 test photographs of ten kinds of things, 3×32×32."""

import gzip
import tarfile
import zlib
from pathlib import Path
from typing import IO, cast

import numpy as np
import torch

from .augmentation import PadCropFlip
from .folder import find_file
from .labelled import LabelledData
from .normalization import Normalization
from .options import Options
from .unpack import damaged, unpack
from .variant import as_asked

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
NORMALIZATION = Normalization((0.4914, 0.4822, 0.4465), (0.247, 0.243, 0.261))
BATCHES = {"train": [f"data_batch_{i}.bin" for i in range(1, 6)], "test": ["test_batch.bin"]}
FILES = [name for names in BATCHES.values() for name in names]
FOLDER, ARCHIVE = "cifar-10-batches-bin", "cifar-10-binary.tar.gz"
RECORD = 1 + 3 * 32 * 32
MOST_BYTES = 10_000 * RECORD
ARCHIVE_BYTES = 6 * MOST_BYTES + 2**20  # unpacked


def load_cifar10(folder: Path, options: Options) -> tuple[LabelledData, LabelledData]:
    """Reads the six binary batches, unpacked or from ``cifar-10-binary.tar.gz``.

    Training images are augmented with a reflected border of 4 px, random crop and flip.
    """
    batches = _find_batches(folder)
    train, test = _split(batches, "train"), _split(batches, "test")
    return as_asked(train, test, options, PadCropFlip(padding=4))


def _split(batches: dict[str, np.ndarray], split: str) -> LabelledData:
    records = [batches[name] for name in BATCHES[split]]
    pixels = np.concatenate([batch[:, 1:] for batch in records])
    labels = np.concatenate([batch[:, 0] for batch in records])
    return LabelledData(
        torch.from_numpy(pixels).reshape(-1, 3, 32, 32),
        torch.from_numpy(labels).long(),
        NORMALIZATION,
        CLASSES,
        "cifar10",
        split,
    )


def _find_batches(folder: Path) -> dict[str, np.ndarray]:
    for place in (folder / FOLDER, folder):
        paths = {name: place / name for name in FILES}
        if all(path.is_file() for path in paths.values()):
            return {name: _records(path, unpack(path, MOST_BYTES)) for name, path in paths.items()}
    archive = find_file(folder, ARCHIVE)
    return {name: _records(archive, content) for name, content in _members(archive).items()}


def _records(path: Path, content: bytes | bytearray) -> np.ndarray:
    if not content or len(content) % RECORD:
        raise damaged(path, f"does not hold whole records of {RECORD} bytes: not CIFAR-10")
    records = np.frombuffer(content, np.uint8).reshape(-1, RECORD)
    if records[:, 0].max() >= len(CLASSES):
        raise damaged(path, f"holds a label {records[:, 0].max()}: not CIFAR-10")
    return records


def _members(archive: Path) -> dict[str, bytes]:
    """Reads the six batches from the archive; nothing is written, and no other name looked at."""
    found: dict[str, bytes] = {}
    try:
        with gzip.open(archive) as unpacked:
            stream = cast("IO[bytes]", _Limited(unpacked, archive))
            with tarfile.open(fileobj=stream, mode="r|") as tar:
                for member in tar:
                    folder, _, name = member.name.rpartition("/")
                    if folder != FOLDER or name not in FILES or not member.isreg():
                        continue
                    content = tar.extractfile(member) if member.size <= MOST_BYTES else None
                    found[name] = content.read() if content else b""
    except (OSError, EOFError, ValueError, zlib.error, tarfile.TarError) as error:
        raise damaged(archive, f"cannot be read: {error}") from error
    for name in FILES:
        if name not in found:
            raise damaged(archive, f"has no {FOLDER}/{name} in it")
    return found


class _Limited:
    """A stream that ends with an error where CIFAR-10 would have ended long ago."""

    def __init__(self, stream: gzip.GzipFile, path: Path) -> None:
        self._stream, self._path, self._room = stream, path, ARCHIVE_BYTES

    def read(self, size: int) -> bytes:
        content = self._stream.read(min(size, self._room + 1))
        self._room -= len(content)
        if self._room < 0:
            raise damaged(self._path, "unpacks to more than CIFAR-10 has")
        return content
