"""Parametrisations: how the numbers that are learned become distilled data. One a file."""

from ..seam import discover
from .parametrisation import RATES, Parameters, Parametrisation
from .plain import Plain
from .soft_labels import SoftLabels

discover(__name__, __path__)

__all__ = ["RATES", "Parameters", "Parametrisation", "Plain", "SoftLabels"]
