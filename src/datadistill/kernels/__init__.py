"""Convolutions in C, compiled on the user's machine when they are first needed."""

from .convolution import NARROW, Convolution, Pooling, convolution

__all__ = ["NARROW", "Convolution", "Pooling", "convolution"]
