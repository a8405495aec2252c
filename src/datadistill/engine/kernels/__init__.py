"""Convolutions in C, compiled on the user's machine when they are first needed."""

from .chain import ChainKernel, Kept, Part
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
    "ChainKernel",
    "Convolution",
    "Kept",
    "Kernels",
    "Part",
    "Pooling",
    "kernels",
    "kernels_for",
    "make_convolution",
    "worth_while",
]
