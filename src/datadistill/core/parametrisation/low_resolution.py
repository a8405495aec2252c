"""Low resolution: distilled images are learned small, and enlarged for the networks."""

from dataclasses import dataclass
from types import MappingProxyType

import torch
import torch.nn.functional as F
from torch import Tensor

from ...errors import ConfigError
from .parametrisation import Tree
from .plain import Plain

FACTORS = 64
"""Images are enlarged at most so many times."""


@dataclass(frozen=True)
class LowResolution(Plain, name="low-resolution"):
    """Images of 1/f of the height and width, enlarged f times, bilinearly.

    Attributes:
        downscale: f.
    """

    downscale: int = 2

    settings = MappingProxyType({**Plain.settings, "downscale": "downscale"})
    stores = ("inputs",)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_factor(self.downscale)

    def start_inputs(self, inputs: Tensor) -> Tree:
        return {"inputs": reduced(inputs, self.downscale)}

    def inputs(self, parameters: Tree) -> Tensor:
        return enlarged(parameters["inputs"], self.downscale)

    def inputs_shape(self, stored: Tree) -> torch.Size:
        return enlarged_shape(stored["inputs"].shape, self.downscale, 5)


def check_factor(factor: int) -> None:
    """Refuses a factor by which no image can be enlarged."""
    if not 1 <= factor <= FACTORS:
        raise ConfigError(f"downscale is {factor}.", f"Set it to at least 1, at most {FACTORS}.")


def reduced(images: Tensor, factor: int) -> Tensor:
    """Images (…, height, width) at 1/factor of their height and width: means of squares."""
    if factor == 1:
        return images
    if images.ndim < 4 or images.shape[-2] % factor or images.shape[-1] % factor:
        raise ConfigError(
            f"Inputs of shape {tuple(images.shape[2:])} cannot be stored at 1/{factor} of their "
            "height and width.",
            "Set downscale to a whole part of both, or leave it out.",
        )
    return F.avg_pool2d(images.flatten(0, -4), factor).unflatten(0, images.shape[:-3])


def enlarged(images: Tensor, factor: int) -> Tensor:
    """Images (…, height, width) with factor times the height and width."""
    if factor == 1:
        return images
    size = [factor * side for side in images.shape[-2:]]
    large = F.interpolate(images.flatten(0, -4), size, mode="bilinear", align_corners=False)
    return large.unflatten(0, images.shape[:-3])


def enlarged_shape(shape: torch.Size, factor: int, dimensions: int) -> torch.Size:
    """The shape of :func:`enlarged`; refuses images of other dimensions."""
    if factor > 1 and len(shape) != dimensions:
        raise ConfigError(f"Images of shape {tuple(shape)} cannot be enlarged.", "Make them again.")
    return shape if factor == 1 else torch.Size([*shape[:-2], *(factor * n for n in shape[-2:])])
