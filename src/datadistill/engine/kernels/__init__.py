"""Convolutions in C, compiled on the user's machine when they are first needed."""

from .convolution import LANES, NARROW, Convolution, Pooling, make_convolution

__all__ = ["LANES", "NARROW", "Convolution", "Pooling", "make_convolution"]
