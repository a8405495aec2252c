"""Updates as straight-line code, traced once and without autograd."""

from .functions import TracedFunctions, is_traced, same_products, traced, worth_tracing
from .layers import kernels_of

__all__ = ["TracedFunctions", "is_traced", "kernels_of", "same_products", "traced", "worth_tracing"]
