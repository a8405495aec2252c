"""Baselines: distilled data made from real images without learning."""

from .random_real import random_real

__all__ = ["random_real"]
