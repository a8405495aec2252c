"""Figures."""

from .picture import draw

__all__ = ["draw"]
