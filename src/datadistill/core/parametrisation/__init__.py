"""Parametrisations: how the numbers that are learned become distilled data. One a file."""

from ..seam import discover
from .bases import Bases
from .labels import LabelKind
from .low_resolution import LowResolution
from .parametrisation import LABELS, RATES, RULE, Parameters, Parametrisation
from .plain import Plain
from .soft_labels import SoftLabels
from .with_rule import WithRule

discover(__name__, __path__)

__all__ = [
    "LABELS",
    "RATES",
    "RULE",
    "Bases",
    "LabelKind",
    "LowResolution",
    "Parameters",
    "Parametrisation",
    "Plain",
    "SoftLabels",
    "WithRule",
]
