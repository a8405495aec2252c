"""Objectives: what is descended on distilled data, and measured on real data. One a file."""

from ..seam import discover
from .classification import Classification
from .objective import Objective
from .own import OwnObjective
from .poisoning import Poisoning
from .regression import Regression

discover(__name__, __path__)

__all__ = ["Classification", "Objective", "OwnObjective", "Poisoning", "Regression"]
