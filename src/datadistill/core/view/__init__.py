"""Views: random transformations of a batch of images, differentiable."""

from ..seam import discover
from .bundles import Combined, Digits, Dsa
from .colour import Brightness, Contrast, Saturation
from .cutout import Cutout
from .geometry import Flip, Rotate, Scale, Shift
from .view import View, Viewed

discover(__name__, __path__)

__all__ = [
    "Brightness",
    "Combined",
    "Contrast",
    "Cutout",
    "Digits",
    "Dsa",
    "Flip",
    "Rotate",
    "Saturation",
    "Scale",
    "Shift",
    "View",
    "Viewed",
]
