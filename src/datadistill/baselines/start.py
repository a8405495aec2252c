"""What distilled images start from: noise, or a baseline's images."""

import math

import torch
from torch import Tensor

from ..core.distiller import Distiller
from ..core.layout import mixtures
from ..core.random import stream
from ..data import LabelledData
from ..errors import ConfigError
from .average_real import AverageReal
from .baseline import Baseline
from .k_means import KMeans
from .layout import Layout

STARTS: dict[str, Baseline] = {"average": AverageReal(), "k-means": KMeans()}
MOST = 2000
"""Examples of a class that k-means clusters for a start: of MNIST, all of a class take eight times
as long, and their distance to the centroids is 1 % less."""


def start_images(start: str, data: LabelledData, distiller: Distiller) -> Tensor | None:
    """The images (steps, images, …) that a distillation starts from; None stands for noise.

    Args:
        start: ``noise``, ``average`` or ``k-means``.
        data: The real data.
        distiller: What they are for.
    """
    if start == "noise":
        return None
    config, objective = distiller.config, distiller.objective
    if not objective.has_classes:
        raise ConfigError(
            f"The {objective.name} objective has no classes to start from by {start}.",
            "Set start to noise.",
        )
    classes = objective.classes(distiller.network.outputs)
    if start == "k-means":
        data = _at_most(MOST, data, classes, config.seed)
    if config.images_per_step is None:
        layout = Layout.of(distiller.network, config.steps, config.images_per_class * classes)
        return STARTS[start].draw(data, layout, config.seed).inputs
    total = config.steps * config.images_per_step
    layout = Layout.of(distiller.network, 1, math.ceil(total / classes) * classes)
    images = STARTS[start].draw(data, layout, config.seed).inputs[0]
    if total < classes:
        images = torch.einsum("mc,c...->m...", mixtures(total, classes).to(images), images)
    return images[:total].unflatten(0, (config.steps, config.images_per_step))


def _at_most(most: int, data: LabelledData, classes: int, seed: int) -> LabelledData:
    """A random sample of each class, or all of a class that has no more."""
    found = [(data.labels == label).nonzero().flatten() for label in range(classes)]
    if all(len(own) <= most for own in found):
        return data
    orders = [
        torch.randperm(len(own), generator=stream(seed, "start", label))[:most]
        for label, own in enumerate(found)
    ]
    chosen = torch.cat([own[order] for own, order in zip(found, orders, strict=True)])
    return data.part(chosen.sort().values, data.split)
