"""Measuring: held-out networks trained on distilled or real data, tested on real data."""

from .evaluate import Evaluation, evaluate, test_networks
from .reference import train_on_all
from .search import LEARNING_RATES, metric_of, search, with_rate

__all__ = [
    "LEARNING_RATES",
    "Evaluation",
    "evaluate",
    "metric_of",
    "search",
    "test_networks",
    "train_on_all",
    "with_rate",
]
