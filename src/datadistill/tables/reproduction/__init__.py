"""The tables and figures of the paper, each made by one call."""

from .catalogue import RESULTS
from .making import make_result, reproduce
from .result import Cell, Curve, Reproduced
from .scale import SCALES, Scale

__all__ = ["RESULTS", "SCALES", "Cell", "Curve", "Reproduced", "Scale", "make_result", "reproduce"]
