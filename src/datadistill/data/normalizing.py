"""Normalising the pixels of both splits with statistics that are asked for."""

from dataclasses import replace

import torch

from ..errors import DataError
from .labelled import LabelledData
from .labels import in_order_of
from .normalization import AT_ONCE, IMAGENET, Normalization
from .options import Statistics
from .whitening import Whitening

MOST_WHITENED = 20_000
"""Training images that a whitening is fitted to at most, evenly spaced."""


def normalized_with(
    statistics: Statistics, train: LabelledData, test: LabelledData
) -> tuple[LabelledData, LabelledData]:
    """Returns both splits, their bytes normalised with other statistics.

    Args:
        statistics: ``data`` for those of the training images, ``imagenet``, or others; ``zca``
            whitens the images, too; None leaves the data alone.
        train: The training data.
        test: The test data.
    """
    if statistics == "zca":
        return _whitened(train, test)
    if statistics is None or not has_pixels(train):
        return train, test
    if statistics == "data":
        found = Normalization.measured(train.inputs)
    else:
        found = IMAGENET if isinstance(statistics, str) else statistics
        channels = train.input_shape[0]
        if channels != len(found.mean) and {channels, len(found.mean)} != {1, 3}:
            return train, test
        found = found.with_channels(channels)
    return replace(train, normalization=found), replace(test, normalization=found)


def _whitened(train: LabelledData, test: LabelledData) -> tuple[LabelledData, LabelledData]:
    """Both splits, whitened as the training images have it."""
    if not has_pixels(train):
        raise DataError(
            f"{train.name} cannot be whitened: its inputs are not images as bytes.",
            "Leave zca out.",
        )
    norm = train.normalization or Normalization.measured(train.inputs)
    plain = replace(train, normalization=norm)
    chosen = torch.arange(0, len(train), max(1, -(-len(train) // MOST_WHITENED))).split(AT_ONCE)
    cpu = torch.device("cpu")
    whitening = Whitening.fitted(plain.batch(part, cpu, torch.float32)[0] for part in chosen)
    norm = replace(norm, whitening=whitening)
    return replace(train, normalization=norm), replace(test, normalization=norm)


def like(other: LabelledData, data: LabelledData) -> LabelledData:
    """Returns data with the normalization and the order of classes of others."""
    data = in_order_of(other.class_names, data)
    both = has_pixels(other) and has_pixels(data)
    return replace(data, normalization=other.normalization) if both else data


def has_pixels(data: LabelledData) -> bool:
    """Whether the inputs are bytes of images, which need to be normalised."""
    return data.inputs.dtype == torch.uint8 and data.inputs.ndim == 4
