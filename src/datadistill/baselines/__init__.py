"""Baselines: images made from real data without distillation; K-NN; few-shot adaptation.

Every module of this package is imported, so that a new file with a registered class is enough to
add a baseline.
"""

import importlib
import pkgutil

from .adversarial import AdversarialSettings, adapt_few_shot
from .average_real import AverageReal
from .baseline import BASELINES, Baseline, Stream, find, from_record, register
from .k_means import KMeans
from .knn import nearest_neighbours, neighbour_accuracy
from .layout import Layout
from .optimised_real import OptimisedReal, best_sets
from .random_real import RandomReal

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = [
    "BASELINES",
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
    "find",
    "from_record",
    "nearest_neighbours",
    "neighbour_accuracy",
    "register",
]
