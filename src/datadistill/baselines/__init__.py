"""Baselines: images made from real data without distillation; K-NN; few-shot adaptation.

Every module of this package is imported, so that a new file is enough to add a baseline.
"""

from ..core.seam import discover
from .adversarial import AdversarialSettings, adapt_few_shot
from .average_real import AverageReal
from .baseline import Baseline, Stream
from .k_means import KMeans
from .knn import nearest_neighbours, neighbour_accuracy
from .layout import Layout
from .optimised_real import OptimisedReal, best_sets
from .random_real import RandomReal

discover(__name__, __path__)

__all__ = [
    "AdversarialSettings",
    "AverageReal",
    "Baseline",
    "KMeans",
    "Layout",
    "OptimisedReal",
    "RandomReal",
    "Stream",
    "adapt_few_shot",
    "best_sets",
    "nearest_neighbours",
    "neighbour_accuracy",
]
