"""Random real images: the same number of images of every class, as they are."""

import torch

from ..core.distilled import Steps, class_labels
from ..core.network import Network
from ..core.random import stream
from ..data import LabelledData
from ..errors import DataError


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

    The learning rates are all 1: choose them with :func:`datadistill.evaluation.search`.
    """
    wanted = steps * images_per_class
    drawn: list[torch.Tensor] = []
    for label in range(classes):
        members = (data.labels == label).nonzero().flatten()
        if len(members) < wanted:
            raise DataError(
                f"Class {label} of {data.name} has {len(members)} examples; {wanted} are needed.",
                "Ask for fewer steps or images per class.",
            )
        order = torch.randperm(len(members), generator=stream(seed, "random real", label))
        drawn.append(members[order[:wanted]].reshape(steps, images_per_class))
    # Classes run fastest, as in distilled data: (steps, images_per_class, classes).
    indices = torch.stack(drawn, dim=-1).reshape(steps, -1)
    inputs, _ = data.batch(indices.flatten(), network.device, network.dtype)
    labels = class_labels(steps, classes, images_per_class).to(network.device)
    rates = inputs.new_ones((1, steps))
    return Steps(inputs.reshape(*indices.shape, *data.input_shape), labels, rates)
