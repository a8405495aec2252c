"""Baselines: distilled data made from real images without learning; K-NN; few-shot adaptation."""

from .adversarial import AdversarialSettings, adapt_few_shot
from .average_real import average_real
from .k_means import k_means
from .nearest_neighbours import nearest_neighbours, neighbour_accuracy
from .optimised_real import optimised_real
from .random_real import random_real

__all__ = [
    "AdversarialSettings",
    "adapt_few_shot",
    "average_real",
    "k_means",
    "nearest_neighbours",
    "neighbour_accuracy",
    "optimised_real",
    "random_real",
]
