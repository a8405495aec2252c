"""Tensors from files that ``torch.save`` wrote: read without running any code."""

import io
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..errors import DataError
from ..reading import read_regular

MOST_BYTES = 4 * 2**30
"""What a file may hold, and a tensor of it may take."""


def read_pt(path: Path) -> Any:
    """What is in a file: tensors, and lists and dictionaries of them. Any code is refused."""
    try:
        raw = read_regular(path, MOST_BYTES)
    except FileNotFoundError:
        raise DataError(f"There is no file {path}.", "Check the path.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.", "Check the path.") from None
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as entries:
            sizes = [entry.file_size for entry in entries.infolist()]
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        raise DataError(
            f"{path} is not a file of torch.save in the format of torch 1.6 and later.",
            "Write it again with a newer torch: torch.save(images.cpu(), 'images.pt').",
        ) from None
    if sum(sizes) > MOST_BYTES:
        raise DataError(f"{path} unpacks to more than {MOST_BYTES:,} bytes.", "Use a smaller one.")
    try:
        return torch.load(io.BytesIO(raw), map_location="cpu", weights_only=True)
    except Exception:  # whatever the unpickler meets in a hostile file
        raise DataError(
            f"{path} holds more than tensors, or is damaged. Code in it was not run.",
            "Save the tensors alone: torch.save(images.cpu(), 'images.pt').",
        ) from None


def checked_tensor(value: object, path: Path, what: str) -> Tensor:
    """A tensor that is what it seems; refuses all else."""
    if not isinstance(value, Tensor) or type(value) not in (Tensor, torch.nn.Parameter):
        raise DataError(
            f"{path} holds {_kind(value)}, not a tensor of {what}.",
            "Name a file with one tensor, or one that DC wrote, with images in data[-1].",
        )
    value = value.detach()
    plain = value.layout is torch.strided and not value.is_quantized and value.device.type == "cpu"
    if not plain or value.is_complex() or value.numel() * value.element_size() > MOST_BYTES:
        raise DataError(f"The {what} of {path} are not a plain tensor.", "Save them again.")
    if value.is_floating_point() and not torch.isfinite(value).all():
        raise DataError(f"The {what} of {path} are not all finite.", "Save them again.")
    return value.clone().contiguous()


def images_and_labels(path: Path) -> tuple[object, object | None]:
    """The images of a file, and their labels if it holds them too, as the files of DC do."""
    found = read_pt(path)
    match found:
        case {"data": [*_, [images, labels, *_]]} | {"data": [*_, (images, labels, *_)]}:
            return images, labels
        case {"images": images, "labels": labels}:
            return images, labels
        case _:
            return found, None


def _kind(value: object) -> str:
    return f"a {type(value).__name__}"
