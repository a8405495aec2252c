"""The artefact: the one file that holds distilled data and all that is needed to use it."""

from .claim import Claim
from .distilled_data import DistilledData
from .header import Header
from .reader import load

__all__ = ["Claim", "DistilledData", "Header", "load"]
