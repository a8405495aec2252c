"""How images of each class are laid out into steps, as distilled data are."""

from collections.abc import Iterator

import torch
from torch import Tensor

from ..core.distilled import Steps, class_labels
from ..core.network import Network
from ..data import LabelledData
from ..errors import DataError

CHUNK_BYTES = 2**26  # of inputs that are read at a time


def members(data: LabelledData, label: int, wanted: int) -> Tensor:
    """The numbers of all examples of a class; refuses a class with fewer than ``wanted``."""
    found = (data.labels == label).nonzero().flatten()
    if len(found) < wanted:
        raise DataError(
            f"Class {label} of {data.name} has {len(found)} examples; {wanted} are needed.",
            "Ask for fewer steps or images per class.",
        )
    return found


def chunks(
    data: LabelledData,
    indices: Tensor,
    dtype: torch.dtype,
    views: torch.Generator | None = None,
) -> Iterator[Tensor]:
    """Normalised inputs of some examples, on the CPU, a bounded number at a time.

    Args:
        data: Real data.
        indices: Which examples.
        dtype: What to turn them into.
        views: Draws one random view of each where the data are augmented; without it the
            inputs are taken as they are.
    """
    size = dtype.itemsize * data.input_shape.numel()
    for part in indices.split(max(1, CHUNK_BYTES // size)):
        yield data.batch(part, torch.device("cpu"), dtype, views)[0]


def lay_out(images: Tensor, network: Network, steps: int) -> Steps:
    """Makes steps of images (classes, steps × images per class, …).

    Every step has the same number of images of every class; classes run fastest, as in
    distilled data. The learning rates are all 1: choose them with
    :func:`datadistill.evaluation.search`.
    """
    classes, wanted = images.shape[:2]
    ordered = images.transpose(0, 1).reshape(steps, -1, *images.shape[2:])
    ordered = ordered.to(network.device, network.dtype)
    labels = class_labels(steps, classes, wanted // steps).to(network.device)
    return Steps(ordered, labels, ordered.new_ones((1, steps)))
