"""Inner minibatches: each update on a random part of the distilled images."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import ConfigError


@dataclass(frozen=True)
class InnerBatches:
    """Each update takes so many images of each class, from all steps.

    The images of a class are shuffled and taken one after the other; when too few are left for
    another update, they are shuffled again. So no update takes an image twice.

    Attributes:
        images: Images of each class that an update takes.
        classes: How many classes the images are laid out in, see
            :func:`~datadistill.core.distilled.class_labels`; 1 takes them whatever their class.
    """

    images: int
    classes: int = 1

    @property
    def size(self) -> int:
        """How many images an update takes in all."""
        return self.images * self.classes

    def check(self, total: int) -> None:
        """Refuses to take more images of a class than there are.

        Args:
            total: How many images there are in all.
        """
        if not 1 <= self.images <= total // self.classes:
            of = " of each class" if self.classes > 1 else ""
            raise ConfigError(
                f"inner_batch is {self.images}, but there are {total // self.classes} distilled "
                f"images{of}.",
                "Lower inner_batch, or distil more images.",
            )

    def draw(self, updates: int, total: int, generator: torch.Generator) -> Tensor:
        """The images of each update, (updates, images), counted through all steps."""
        self.check(total)
        each = total // self.classes
        in_a_pass = each // self.images
        passes = math.ceil(updates / in_a_pass)
        order = torch.rand(passes, self.classes, each, generator=generator).argsort(stable=True)
        # (passes, classes, updates, images) → (updates, classes, images)
        order = order[..., : in_a_pass * self.images].unflatten(-1, (in_a_pass, self.images))
        order = order.transpose(1, 2).flatten(0, 1)[:updates]
        # The images of a step are laid out class by class, over and over.
        return (order * self.classes + torch.arange(self.classes)[:, None]).flatten(1)
