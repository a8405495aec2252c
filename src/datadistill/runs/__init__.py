"""Whole distillations, and what they are worth."""

from .comparison import Comparison, compare
from .distill import distill

__all__ = ["Comparison", "compare", "distill"]
