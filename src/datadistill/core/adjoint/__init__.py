"""Adjoints: how the gradient travels back through the updates. One adjoint a file."""

from ..seam import discover
from .adjoint import Adjoint, OuterLoss
from .back_gradient import BackGradient, reverse_sweep
from .ridge_head import RidgeHead
from .stored_graph import StoredGraph
from .truncated import Truncated

discover(__name__, __path__)

__all__ = [
    "Adjoint",
    "BackGradient",
    "OuterLoss",
    "RidgeHead",
    "StoredGraph",
    "Truncated",
    "reverse_sweep",
]
