"""What distilled images start from."""

from torch import Tensor

from ..baselines import AverageReal, Baseline, KMeans, Layout
from ..core.distiller import Distiller
from ..core.objective import Classification
from ..data import LabelledData
from ..errors import ConfigError
from .config import RunConfig

STARTS: dict[str, Baseline] = {"average": AverageReal(), "k-means": KMeans()}


def start_images(config: RunConfig, data: LabelledData, distiller: Distiller) -> Tensor | None:
    """The images (steps, images, …) that a configuration starts from; nothing stands for noise."""
    if config.start == "noise":
        return None
    if not isinstance(distiller.objective, Classification):
        raise ConfigError(
            f"The {distiller.objective.name} objective has no classes to start from by "
            f"{config.start}.",
            "Set start to noise.",
        )
    images = config.images_per_class * distiller.objective.classes(distiller.network.outputs)
    layout = Layout.of(distiller.network, config.steps, images)
    return STARTS[config.start].draw(data, layout, config.seed).inputs
