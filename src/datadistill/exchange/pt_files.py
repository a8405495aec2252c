"""Tensors from files that ``torch.save`` wrote: read without running any code."""

import io
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..data.dense import FLOATS
from ..errors import DataError
from ..reading import check_stored, read_regular

MOST_BYTES = 4 * 2**30
"""What a file may hold."""
NUMBERS = {*FLOATS, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}


def read_pt(path: Path) -> Any:
    """What is in a file: tensors, and lists and dictionaries of them. Any code is refused."""
    try:
        raw = read_regular(path, MOST_BYTES)
    except FileNotFoundError:
        raise DataError(f"There is no file {path}.", "Check the path.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.", "Check the path.") from None
    try:
        check_stored(io.BytesIO(raw))
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise DataError(
            f"{path} is not a file of torch.save in the format of torch 1.6 and later: {error}.",
            "Write it again with a newer torch: torch.save(images.cpu(), 'images.pt').",
        ) from None
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
    plain = value.layout is torch.strided and value.device.type == "cpu" and value.dtype in NUMBERS
    if not plain or value.numel() * value.element_size() > value.untyped_storage().nbytes():
        raise DataError(f"The {what} of {path} are not a plain tensor.", "Save them again.")
    value = value.float() if value.is_floating_point() else value
    if not torch.isfinite(value).all():
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
