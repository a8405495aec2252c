"""Random real images: the same number of images of every class, as they are."""

import torch

from ..core.distilled import Steps
from ..core.network import Network
from ..core.random import stream
from ..data import LabelledData
from .layout import lay_out, members


def random_real(
    data: LabelledData,
    network: Network,
    *,
    classes: int,
    steps: int = 1,
    images_per_class: int = 1,
    seed: int = 0,
) -> Steps:
    """Draws steps of real training images, without replacement.

    Where the data are augmented, each image is a random view, as networks see it in training.

    Args:
        data: Real training data.
        network: The network they are for: its device and dtype.
        classes: How many classes there are.
        steps: Steps to make.
        images_per_class: Images of each class in every step.
        seed: Which set; sets of different seeds are drawn independently.
    """
    wanted = steps * images_per_class
    drawn: list[torch.Tensor] = []
    for label in range(classes):
        found = members(data, label, wanted)
        order = torch.randperm(len(found), generator=stream(seed, "random real", label))
        drawn.append(found[order[:wanted]])
    views = stream(seed, "views of random real")
    inputs, _ = data.batch(torch.cat(drawn), network.device, network.dtype, views)
    return lay_out(inputs.reshape(classes, wanted, *data.input_shape), network, steps)
