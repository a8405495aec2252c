"""What both the maker of the files and their tests need. Nothing here uses datadistill."""

import hashlib

import torch
import torch.nn.functional as F
from torch import Tensor

Figures = dict[str, list[float]]


def processor_bits() -> str:
    """A hash of some of this processor's floating-point results.

    A run knows its data and its initial weights by their hash. Resized images and normal random
    numbers differ in the last bit between processors with and without AVX2.
    """
    drawn = torch.empty(64, 10).normal_(0, 0.2, generator=torch.Generator().manual_seed(0))
    uniform = torch.empty(64, 10).uniform_(-0.3, 0.3, generator=torch.Generator().manual_seed(0))
    images = (torch.arange(50 * 64) * 7 % 17).float().reshape(50, 1, 8, 8)
    large = F.interpolate(images, size=28, mode="bilinear", align_corners=False)
    again = F.interpolate(large, size=8, mode="bicubic", antialias=True, align_corners=False)
    digest = hashlib.sha256()
    for tensor in (drawn, uniform, large, again):
        digest.update(tensor.contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def figures_of(tensors: dict[str, Tensor]) -> Figures:
    """A few numbers of each tensor: its norm, and values at both ends."""
    return {
        name: [float(tensor.double().norm()), *_ends(tensor.double().flatten())]
        for name, tensor in tensors.items()
    }


def _ends(values: Tensor) -> list[float]:
    return [float(value) for value in (*values[:3], *values[-3:])]
