"""Convolutions in C, compiled on the user's machine when they are first needed."""

from .convolution import (
    LANES,
    NARROW,
    Convolution,
    Pooling,
    kernels_for,
    make_convolution,
    worth_while,
)
from .library import Kernels, kernels

__all__ = [
    "LANES",
    "NARROW",
    "Convolution",
    "Kernels",
    "Pooling",
    "kernels",
    "kernels_for",
    "make_convolution",
    "worth_while",
]
