"""A hash of real data, by which results and runs know what they were made from."""

import functools
import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import torch
from torch import Tensor

from ..errors import DataError
from ..reading import read_regular
from .images.image_files import ImageFiles
from .labelled import LabelledData


def data_hash(data: LabelledData) -> str:
    """SHA-256 of real data: name, shape, normalization, augmentation, labels, and all inputs.

    Image files are hashed by their content, each of them once in a process unless it changes.
    Their names and dates do not matter.
    """
    inputs = data.inputs
    if isinstance(inputs, ImageFiles):
        return _hash(data, _contents(inputs))
    return _hash(data, [_bytes(inputs)])


def legacy_data_hash(data: LabelledData) -> str:
    """The hash of earlier versions, which covers only the names of image files."""
    inputs = data.inputs
    if isinstance(inputs, ImageFiles):
        return _hash(data, (path.rpartition("/")[2].encode() for path in inputs.paths))
    return data_hash(data)


def same_data(recorded: str, data: LabelledData) -> bool:
    """Whether a recorded hash, of this or an earlier version, is the hash of these data."""
    in_files = isinstance(data.inputs, ImageFiles)
    return (in_files and recorded == legacy_data_hash(data)) or recorded == data_hash(data)


def _hash(data: LabelledData, inputs: Iterable[bytes]) -> str:
    digest = hashlib.sha256(
        f"{data.name} {data.split} {tuple(data.inputs.shape)} {data.normalization} "
        f"{_name(data.augmentation)}".encode("utf-8", "surrogateescape")
    )
    digest.update(_bytes(data.labels))
    for part in inputs:
        digest.update(part)
    return digest.hexdigest()


def _contents(files: ImageFiles) -> Iterator[bytes]:
    """What the pixels are made of: how they are cropped, and a hash of every file."""
    yield f"files {files.margin} {files.regions}".encode()
    yield from map(_file_hash, files.paths)


def _file_hash(path: str) -> bytes:
    try:
        stat = Path(path).stat()
        return _content_hash(path, stat.st_size, stat.st_mtime_ns)
    except OSError as error:
        raise DataError(
            f"{path} cannot be read: {error.strerror or error}.", "Restore the file."
        ) from error


@functools.cache
def _content_hash(path: str, size: int, modified: int) -> bytes:  # noqa: ARG001
    """The hash of a file's content, computed again if its size or date changes."""
    return hashlib.blake2b(read_regular(Path(path))).digest()


def _name(augmentation: object) -> str:
    """The repr of an augmentation, without memory addresses."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(augmentation))


def _bytes(tensor: Tensor) -> bytes:
    return tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes()
