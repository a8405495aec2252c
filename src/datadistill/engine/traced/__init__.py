"""Updates as straight-line code, traced once and without autograd."""

from .functions import FEWEST_UPDATES, TracedFunctions, traced
from .layers import kernels_of

__all__ = ["FEWEST_UPDATES", "TracedFunctions", "kernels_of", "traced"]
