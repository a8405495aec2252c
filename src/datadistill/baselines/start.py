"""What distilled images start from: noise, or a baseline's images."""

import math

import torch
from torch import Tensor

from ..core.distiller import Distiller
from ..core.layout import mixtures
from ..data import LabelledData
from ..errors import ConfigError
from .average_real import AverageReal
from .baseline import Baseline
from .k_means import KMeans
from .layout import Layout

STARTS: dict[str, Baseline] = {"average": AverageReal(), "k-means": KMeans()}


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
    if config.images_per_step is None:
        layout = Layout.of(distiller.network, config.steps, config.images_per_class * classes)
        return STARTS[start].draw(data, layout, config.seed).inputs
    total = config.steps * config.images_per_step
    layout = Layout.of(distiller.network, 1, math.ceil(total / classes) * classes)
    images = STARTS[start].draw(data, layout, config.seed).inputs[0]
    if total < classes:
        images = torch.einsum("mc,c...->m...", mixtures(total, classes).to(images), images)
    return images[:total].unflatten(0, (config.steps, config.images_per_step))
