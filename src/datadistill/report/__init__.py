"""What can be looked at: the page about a run, figures for papers, pictures of images."""

from .making import Report, Sources, report
from .picture import draw

__all__ = ["Report", "Sources", "draw", "report"]
