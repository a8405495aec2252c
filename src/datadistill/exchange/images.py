"""Distilled images as PNG files: to look at, or as an image folder."""

import re
from pathlib import Path

import numpy as np
from PIL import Image
from torch import Tensor

from ..artefact import DistilledData
from ..errors import DataError
from ..files import replacing

NOT_IN_NAMES = re.compile(r"[^\w.-]+")


def write_pictures(distilled: DistilledData, folder: Path) -> list[str]:
    """Writes every image by itself, stretched to its own range: to look at."""
    for step, images in enumerate(checked_images(distilled)):
        for number, image in enumerate(images):
            name = f"step-{step + 1:03d}-image-{number + 1:04d}-{_label(distilled, step, number)}"
            _write(stretched(image), folder / f"{name}.png")
    return ["Each image is stretched to its own range of values: to look at, not to train on."]


def write_folder(distilled: DistilledData, folder: Path) -> list[str]:
    """Writes an image folder, CLASS/….png, of pixels clipped to [0, 1]."""
    images = checked_images(distilled)
    for step, row in enumerate(images):
        for number, image in enumerate(row):
            name = f"step-{step + 1:03d}-image-{number + 1:04d}.png"
            pixels = (255 * image.clamp(0, 1)).round().byte()
            _write(_channels_last(pixels), folder / _label(distilled, step, number) / name)
    lost = float(((images < 0) | (images > 1)).double().mean())
    clipped = f"{100 * lost:.2g} % of the pixels were outside [0, 1] and are clipped."
    notes = [clipped] if lost else []
    if distilled.labels.is_floating_point():
        notes.append("The folder of an image is its largest soft label; the others are lost.")
    exact = "Exact values, labels and learning rates are in the formats npz and dd-ranking."
    return [*notes, exact]


def checked_images(distilled: DistilledData) -> Tensor:
    """The distilled images as pixels; refuses what is no image."""
    images = distilled.images.detach().cpu().float()
    if images.ndim != 5 or images.shape[2] not in (1, 3):
        raise DataError(
            f"Distilled data of shape {tuple(images.shape[2:])} are not images.",
            "Export them as npz, dd-ranking or script.",
        )
    return images


def stretched(image: Tensor) -> np.ndarray:
    """One image as bytes (height, width, …), stretched to its own range."""
    low, high = image.double().aminmax()  # the range itself may be out of range
    scaled = (image - low) / (high - low).clamp_min(1e-12)
    return _channels_last((255 * scaled).round().byte())


def hard_label(distilled: DistilledData, step: int, image: int) -> int:
    """The class of an image; the most probable one of a soft label."""
    label = distilled.labels[step, image]
    if not label.is_floating_point():
        return int(label)
    return int(label.argmax()) if label.ndim else int(label > 0.5)


def _label(distilled: DistilledData, step: int, image: int) -> str:
    """What a file or folder is called after the class of an image."""
    number, names = hard_label(distilled, step, image), distilled.class_names or []
    if not 0 <= number < len(names):
        return str(number)
    # A name from a file is no path, and two names that look alike stay apart.
    name = NOT_IN_NAMES.sub("_", names[number]).strip(".")[:80]
    return name if names[number] == name else f"{number}-{name}"


def _channels_last(pixels: Tensor) -> np.ndarray:
    return pixels.permute(1, 2, 0).squeeze(-1).numpy()


def _write(pixels: np.ndarray, path: Path) -> None:
    with replacing(path) as temporary:
        Image.fromarray(pixels).save(temporary, format="png")
