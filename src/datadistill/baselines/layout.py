"""How many images of each class a step has, and how images become steps."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ..core.distilled import Steps, class_labels
from ..core.network import Network
from ..core.objective import Classification
from ..data import LabelledData
from ..errors import ConfigError, DataError

CHUNK_BYTES = 2**26  # of inputs that are read at a time
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Layout:
    """The shape of the steps that a baseline makes: that of the distilled data beside it.

    Attributes:
        classes: Number of classes.
        steps: Number of steps.
        images_per_class: Images of each class in every step.
        dtype: Dtype of the images.
        device: Device of the images.
    """

    classes: int
    steps: int = 1
    images_per_class: int = 1
    dtype: torch.dtype = torch.float32
    device: torch.device = CPU

    @classmethod
    def of(cls, network: Network, steps: int, images: int) -> "Layout":
        """The layout of ``steps`` with ``images`` each, for a classifier."""
        classes = Classification().classes(network.outputs)
        if images % classes:
            raise ConfigError(
                f"A step of these distilled data has {images} images for {classes} classes; "
                "baselines have the same number of every class.",
                "Evaluate them without baselines.",
            )
        return cls(classes, steps, images // classes, network.dtype, network.device)

    @property
    def per_class(self) -> int:
        """Images of each class in all steps."""
        return self.steps * self.images_per_class

    def arrange(self, images: Tensor) -> Steps:
        """Makes steps of images (classes, images of each class in all steps, …).

        Every step has the same number of images of every class; classes run fastest, as in
        distilled data. The learning rates are all 1: choose them with
        :func:`datadistill.evaluation.rate_search`.
        """
        ordered = images.transpose(0, 1).reshape(self.steps, -1, *images.shape[2:])
        ordered = ordered.to(self.device, self.dtype)
        labels = class_labels(self.steps, self.classes, self.images_per_class)
        return Steps(ordered, labels.to(self.device), ordered.new_ones((1, self.steps)))


def members(data: LabelledData, label: int, wanted: int) -> Tensor:
    """The indices of all examples of a class; refuses a class with fewer than ``wanted``."""
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
        dtype: The dtype of the inputs.
        views: Draws one random view of each example if the data are augmented; without it the
            examples are not augmented.
    """
    size = dtype.itemsize * data.input_shape.numel()
    for part in indices.split(max(1, CHUNK_BYTES // size)):
        yield data.batch(part, CPU, dtype, views)[0]
