"""How distilled images are laid out: which classes they start as, which of them an update takes."""

import math

import torch
from torch import Tensor

from .inner_batches import InnerBatches
from .objective import Objective
from .settings import DistillerConfig, Learned


def start_labels(
    objective: Objective, outputs: torch.Size, labels: Tensor, config: Learned, seed: int
) -> Tensor:
    """The labels that distilled data start with, (steps, images, …).

    Args:
        objective: What the data are learned for.
        outputs: The shape of a network's output for one input.
        labels: The labels of the real data.
        config: How many steps and images there are.
        seed: The run's seed.
    """
    classes, images = objective.classes(outputs), config.images_per_step
    if images is None or not classes:
        per_step = images or config.images_per_class
        return objective.start_labels(outputs, labels, config.steps, per_step, seed)
    total = config.steps * images
    start = objective.start_labels(outputs, labels, 1, math.ceil(total / classes), seed)[0]
    if total < classes:
        soft = objective.soft_labels(outputs, start)
        start = torch.einsum("mc,c...->m...", mixtures(total, classes), soft)
    return start[:total].unflatten(0, (config.steps, images))


def mixtures(images: int, classes: int) -> Tensor:
    """What each of few images is a mixture of, (images, classes): classes take turns."""
    turns = torch.arange(classes) % images
    members = (turns == torch.arange(images)[:, None]).float()
    return members / members.sum(1, keepdim=True)


def inner_batches(config: DistillerConfig, images: int) -> InnerBatches | None:
    """How updates draw their images; None: an update takes all images of its step.

    Args:
        config: The settings.
        images: How many images a step has.
    """
    if config.inner_batch is None and not config.shuffle:
        return None
    classes = 1 if config.images_per_step else images // config.images_per_class
    inner = InnerBatches(config.inner_batch or images // classes, classes)
    if config.shuffle:
        inner = InnerBatches(inner.size)
    inner.check(config.steps * images)
    return inner
