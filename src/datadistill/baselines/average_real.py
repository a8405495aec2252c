"""Average real images: the mean image of every class."""

import torch

from ..core.distilled import Steps
from ..core.network import Network
from ..data import LabelledData
from .layout import chunks, lay_out, members


def average_real(
    data: LabelledData,
    network: Network,
    *,
    classes: int,
    steps: int = 1,
    images_per_class: int = 1,
) -> Steps:
    """Makes steps of class means; the same images are used at every step.

    The means are summed in float64 from images that are read in chunks, so that they are exact
    to the rounding of the network's dtype.

    Args:
        data: Real training data.
        network: The network they are for: its device and dtype.
        classes: How many classes there are.
        steps: Steps to make.
        images_per_class: How often each mean is in a step.
    """
    means: list[torch.Tensor] = []
    for label in range(classes):
        found = members(data, label, 1)
        total = torch.zeros(data.input_shape, dtype=torch.float64)
        for inputs in chunks(data, found, torch.float64):
            total += inputs.sum(0)
        means.append(total / len(found))
    images = torch.stack(means)[:, None]
    return lay_out(images.expand(-1, steps * images_per_class, *data.input_shape), network, steps)
