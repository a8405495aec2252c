"""Update rules: how learners change their weights. One rule a file, found by its name."""

from ..seam import discover
from .adam import Adam
from .gradient_descent import GradientDescent
from .layer_rates import LayerRates
from .learned import LearnedRule
from .loop import train, trained, training, updated
from .momentum import Momentum
from .nesterov import Nesterov
from .rule import UpdateRule
from .weight_decay import WeightDecay

discover(__name__, __path__)

__all__ = [
    "Adam",
    "GradientDescent",
    "LayerRates",
    "LearnedRule",
    "Momentum",
    "Nesterov",
    "UpdateRule",
    "WeightDecay",
    "train",
    "trained",
    "training",
    "updated",
]
