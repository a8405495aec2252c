"""What distilled images start from: noise, or a baseline's images."""

from torch import Tensor

from ..core.distiller import Distiller
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
    images = config.images_per_class * objective.classes(distiller.network.outputs)
    layout = Layout.of(distiller.network, config.steps, images)
    return STARTS[start].draw(data, layout, config.seed).inputs
