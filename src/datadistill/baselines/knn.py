"""K-nearest-neighbour classification, with few images as possible neighbours."""

import itertools
from typing import Literal, get_args

import torch
from torch import Tensor

from ..core.distilled import Steps
from ..data import LabelledData
from .layout import chunks

Norm = Literal["l1", "l2"]
NEIGHBOURS = (1, 3)
CHOICES: tuple[tuple[Norm, int], ...] = tuple(itertools.product(get_args(Norm), NEIGHBOURS))
"""What the paper tries: both norms, one or three neighbours."""


def nearest_neighbours(
    images: Tensor, labels: Tensor, inputs: Tensor, *, norm: Norm, neighbours: int
) -> Tensor:
    """Returns the class of each input: the commonest among its nearest images.

    Distances are computed in float64. Of images that are equally far, the first is nearer; of
    classes with equally many votes, the lowest number wins, as in scikit-learn.

    Args:
        images: (images, …), the possible neighbours.
        labels: (images,), the classes of the images.
        inputs: (inputs, …), to classify.
        norm: How distance is measured.
        neighbours: K, how many nearest images vote.
    """
    far = _distances(inputs.flatten(1).double(), images.flatten(1).double(), norm)
    nearest = far.sort(stable=True).indices[:, :neighbours]
    classes = int(labels.max()) + 1
    votes = torch.zeros(len(inputs), classes, dtype=torch.long)
    votes.scatter_add_(1, labels[nearest], torch.ones_like(nearest))
    # Fewer votes weigh less than any difference of numbers: no two classes are ever equal.
    return (classes * votes - torch.arange(classes)).argmax(1)


def neighbour_accuracy(steps: Steps, data: LabelledData, *, norm: Norm, neighbours: int) -> float:
    """The share of real examples whose nearest images in the steps have their class."""
    images, labels = steps.inputs.flatten(0, 1).cpu(), steps.labels.flatten().cpu()
    found = [
        nearest_neighbours(images, labels, inputs, norm=norm, neighbours=neighbours)
        for inputs in chunks(data, torch.arange(len(data)), images.dtype)
    ]
    return float((torch.cat(found) == data.labels.cpu()).double().mean())


def _distances(inputs: Tensor, images: Tensor, norm: Norm) -> Tensor:
    """Distances of inputs (rows) to images (columns); for l2 a number with the same ranking."""
    if norm == "l1":
        return torch.cdist(inputs, images, p=1.0)
    # ‖x − r‖² = ‖x‖² − 2⟨x, r⟩ + ‖r‖², and ‖x‖² is the same for all r.
    return images.square().sum(1) - 2 * inputs @ images.T
