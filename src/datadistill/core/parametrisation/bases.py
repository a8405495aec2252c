"""Bases: distilled images are mixtures of a few learned ones."""

from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import Tensor

from ...errors import ConfigError
from .low_resolution import check_factor, enlarged, enlarged_shape, reduced
from .parametrisation import Tree
from .plain import Plain


@dataclass(frozen=True)
class Bases(Plain, name="bases"):
    """x̃ = A·B: every image is a mixture of the same K bases (Deng and Russakovsky 2022).

    A holds the coefficients (steps, images, K), B the bases (K, …). Both are learned. They start as
    the mixtures that come closest to the images to start from.

    Attributes:
        bases: K.
        downscale: The bases have 1/``downscale`` of the images' height and width.
    """

    bases: int = 10
    downscale: int = 1

    settings = MappingProxyType({**Plain.settings, "bases": "bases", "downscale": "downscale"})
    stores = ("bases", "coefficients")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_factor(self.downscale)
        if self.bases < 1:
            raise ConfigError(f"bases is {self.bases}.", "Set bases to at least 1.")

    def start_inputs(self, inputs: Tensor) -> Tree:
        images = reduced(inputs, self.downscale)
        flat = images.flatten(0, 1).flatten(1)
        if self.bases > min(flat.shape):
            raise ConfigError(
                f"bases is {self.bases}, but there are {len(flat)} images of {flat.shape[1]} "
                "numbers.",
                f"Set bases to at most {min(flat.shape)}.",
            )
        # By singular values, scaled so that a base has pixels of the usual size.
        u, s, v = torch.linalg.svd(flat, full_matrices=False)
        size = flat.shape[1] ** 0.5
        bases, mixtures = size * v[: self.bases], (u * s / size)[:, : self.bases]
        # Laid out as a checkpoint gives them back: the last bit of a product depends on it.
        return {
            "bases": bases.unflatten(1, images.shape[2:]).contiguous(),
            "coefficients": mixtures.unflatten(0, images.shape[:2]).contiguous(),
        }

    def inputs(self, parameters: Tree) -> Tensor:
        # Bases are enlarged before they are mixed: there are fewer of them.
        bases = enlarged(parameters["bases"], self.downscale)
        return torch.tensordot(parameters["coefficients"], bases, dims=1)

    def inputs_shape(self, stored: Tree) -> torch.Size:
        coefficients, bases = stored["coefficients"].shape, stored["bases"].shape
        if len(coefficients) != 3 or coefficients[2] != bases[0]:
            raise ConfigError(
                f"Coefficients of shape {tuple(coefficients)} do not fit bases of shape "
                f"{tuple(bases)}.",
                "Make them again.",
            )
        image = enlarged_shape(bases, self.downscale, 4)[1:]
        return torch.Size([*coefficients[:2], *image])
