"""Converting images in memory: another size, colour to grey, grey to colour."""

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from ...errors import DataError
from ..labelled import LabelledData
from ..normalization import LUMA
from ..options import Options
from .augmentation import Augmentation

AT_ONCE = 1024


def apply_options(
    train: LabelledData,
    test: LabelledData,
    options: Options,
    known: Augmentation | None = None,
    by_default: bool = True,
) -> tuple[LabelledData, LabelledData]:
    """Applies the size, channels and augmentation of the options to both splits of a data set.

    Args:
        train: The training images, in memory.
        test: The test images.
        options: What to apply.
        known: The augmentation that suits these images.
        by_default: Whether to use it unless the options say otherwise.
    """
    augmentation = options.augmentation(train.name, known, by_default)
    return replace(_converted(train, options), augmentation=augmentation), _converted(test, options)


def _converted(data: LabelledData, options: Options) -> LabelledData:
    size, channels = options.size, options.channels
    if size is None and channels is None:
        return data
    images = data.inputs
    if images.ndim == 4 and _has(images.shape, size, channels):
        return data  # floats too
    if not isinstance(images, Tensor) or images.dtype != torch.uint8 or images.ndim != 4:
        asked = {"size": size, "channels": channels}
        wanted = " and ".join(f"{name} {value}" for name, value in asked.items() if value)
        raise DataError(
            f"The inputs of {data.name}, of shape {tuple(data.input_shape)}, are not images of "
            f"bytes and cannot be converted to {wanted}.",
            "Provide bytes (uint8, 0 to 255), or floats (examples, channels, height, width) of "
            "that shape.",
        )
    norm = data.normalization
    if channels is not None:
        images = with_channels(images, channels)
        norm = norm and norm.with_channels(channels)
    if size is not None:
        images = resized(images, size)
    return replace(data, inputs=images, normalization=norm)


def _has(shape: torch.Size, size: int | None, channels: int | None) -> bool:
    """Whether images (examples, channels, height, width) have this size and these channels."""
    return channels in (None, shape[1]) and (size is None or shape[2:] == (size, size))


def with_channels(images: Tensor, channels: int) -> Tensor:
    """Converts grey images to colour (without copying them), or colour to grey."""
    if images.shape[1] == channels:
        return images
    if channels == 3:
        return images.expand(-1, 3, -1, -1)
    weights = torch.tensor(LUMA)[:, None, None]
    grey = [(part * weights).sum(1, keepdim=True) for part in images.split(AT_ONCE)]
    return torch.cat([part.round().to(torch.uint8) for part in grey])


def resized(images: Tensor, size: int) -> Tensor:
    """Resizes bytes (examples, channels, height, width) to squares: bicubic, antialiased."""
    if images.shape[2:] == (size, size):
        return images
    parts: list[Tensor] = []
    for part in images.split(AT_ONCE):
        large = F.interpolate(part.float(), size=(size, size), mode="bicubic", antialias=True)
        parts.append(large.round().clamp(0, 255).to(torch.uint8))
    return torch.cat(parts)
