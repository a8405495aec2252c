"""ZCA whitening: real images with the correlation of their pixels taken out."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from ..core.values import one_line, same
from ..errors import DataError

EPSILON = 0.1
"""Added to every variance, so that directions that hardly vary are not blown up."""
FLAT = 0.02
"""Directions whose variance is below this share of ``EPSILON`` count as flat, and are not kept."""
LARGEST = 4096
"""Numbers of an image at most: the time to fit grows with their third power."""


@dataclass(frozen=True)
class Whitening:
    """W (x − m) with W = U (Λ + ε)^(−½) Uᵀ, after pixels are normalised.

    Λ are the variances along the directions U of the training images. In all other directions they
    hardly vary: there W is ε^(−½).

    Attributes:
        mean: m, (numbers of an image,).
        directions: U, (numbers of an image, directions), orthonormal.
        variances: Λ, (directions,).
    """

    mean: Tensor
    directions: Tensor
    variances: Tensor

    __repr__ = one_line
    __eq__ = same
    __hash__ = object.__hash__

    @classmethod
    def fitted(cls, batches: Iterable[Tensor]) -> "Whitening":
        """That of normalised images, batch by batch."""
        count, total, products = 0, torch.zeros(()), torch.zeros(())
        for batch in batches:
            flat = batch.flatten(1)
            if flat.shape[1] > LARGEST:
                raise DataError(
                    f"Whitening images of {flat.shape[1]:,} numbers would take too long.",
                    f"Use images of at most {LARGEST:,} numbers: set size, or leave zca out.",
                )
            count += len(flat)
            total = total + flat.sum(0, dtype=torch.float64)
            products = products + (flat.T @ flat).double()
        mean = total / count
        variances, directions = torch.linalg.eigh(products / count - mean.outer(mean))
        kept = variances > FLAT * EPSILON
        return cls(mean.float(), directions[:, kept].float().contiguous(), variances[kept].float())

    @property
    def size(self) -> int:
        """Numbers of an image."""
        return len(self.mean)

    def apply(self, images: Tensor) -> Tensor:
        """Normalised images (…, channels, height, width) → whitened ones."""
        flat = images.flatten(-3) - self.mean.to(images)
        return self._scaled(flat, -0.5).unflatten(-1, images.shape[-3:])

    def undo(self, images: Tensor) -> Tensor:
        """Whitened images → normalised ones."""
        flat = self._scaled(images.flatten(-3), 0.5) + self.mean.to(images)
        return flat.unflatten(-1, images.shape[-3:])

    def tensors(self) -> dict[str, Tensor]:
        """The tensors by name, as a file holds them."""
        return {
            "mean": self.mean,
            "directions": self.directions,
            "variances": self.variances,
        }

    def _scaled(self, flat: Tensor, power: float) -> Tensor:
        """Multiplied by (Λ + ε)^power in its directions, by ε^power in all others."""
        u = self.directions.to(flat)
        others = EPSILON**power
        along = (self.variances.to(flat) + EPSILON) ** power - others
        return flat * others + ((flat @ u) * along) @ u.T
