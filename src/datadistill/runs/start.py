"""What distilled images start from."""

from torch import Tensor

from ..baselines import average_real, k_means
from ..core.distiller import Distiller
from ..core.objective import Classification
from ..data import LabelledData
from ..errors import ConfigError
from .config import RunConfig


def start_images(config: RunConfig, data: LabelledData, distiller: Distiller) -> Tensor | None:
    """The images (steps, images, …) that a configuration starts from; nothing stands for noise."""
    if config.start == "noise":
        return None
    if not distiller.objective.has_classes:
        raise ConfigError(
            f"The {distiller.objective.name} objective has no classes to start from by "
            f"{config.start}.",
            "Set start to noise.",
        )
    classes = distiller.objective.classes(distiller.network.outputs)
    layout = {"classes": classes, "steps": config.steps}
    layout["images_per_class"] = config.images_per_class
    if config.start == "average":
        return average_real(data, distiller.network, **layout).inputs
    return k_means(data, distiller.network, **layout, seed=config.seed).inputs
