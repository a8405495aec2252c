"""Figures: pictures of distilled and of real images, and the curve of the linear bound."""

from .picture import draw

__all__ = ["draw"]
