"""Full fine-tuning: what the same layers reach when they are trained on all real images."""

import functools

from ..core.initialization import networks_for
from ..core.network import Weights
from ..evaluation import test_networks
from ..evaluation.reference import learning_on_all
from ..evaluation.search import Score, best
from ..progress import Progress
from .context import FIGURES, Bench, Values

FINE_TUNING = "full fine-tuning"
LEARNING_RATES = (0.0003, 0.001, 0.003)
EPOCHS = (5, 10, 20)
ORDERS = 3
"""In how many orders of the images the networks are trained."""


def fine_tuning(bench: Bench, held_out: float) -> tuple[Values, str]:
    """Figures of the pre-trained network trained on all real data, by Adam in minibatches of 64.

    The learning rate and the number of epochs are the best on held-out training data; then all
    training data are used, in several orders.

    Args:
        bench: What it is measured with.
        held_out: The share of the training data to choose on.
    """
    lr, epochs = _choose(bench, held_out)

    def compute(order: int) -> list[float]:
        *_, weights = learning_on_all(
            bench.network,
            _theta0(bench),
            bench.train,
            bench.distilled.objective,
            epochs=epochs,
            lr=lr,
            seed=order,
        )
        return [_accuracy(bench, weights)]

    values: list[float] = []
    for order in range(ORDERS):
        key = {"what": FINE_TUNING, "order": order, "lr": lr, "epochs": epochs}
        values += bench.parts.get(key, functools.partial(compute, order), FIGURES, 1)
        bench.progress(Progress(FINE_TUNING, order + 1, ORDERS))
    return tuple((one,) for one in values), f"Adam, lr {lr:g}, {epochs} epochs"


def _choose(bench: Bench, held_out: float) -> tuple[float, int]:
    """The learning rate and epochs that are best on held-out training data."""
    rest, validation = bench.train.hold_out(held_out, seed=0)
    objective = bench.distilled.objective

    def compute(lr: float) -> list[float]:
        trained = learning_on_all(
            bench.network, _theta0(bench), rest, objective, epochs=max(EPOCHS), lr=lr
        )
        return [
            test_networks(bench.network, weights, validation, objective).mean
            for epoch, weights in enumerate(trained, 1)
            if epoch in EPOCHS
        ]

    scores: dict[tuple[float, int], list[Score]] = {}
    for done, lr in enumerate(LEARNING_RATES, 1):
        key = {"what": f"{FINE_TUNING}: choosing", "lr": lr, "epochs": EPOCHS}
        found = bench.parts.get(key, functools.partial(compute, lr), FIGURES, len(EPOCHS))
        scores |= {(lr, e): [Score(score)] for e, score in zip(EPOCHS, found, strict=True)}
        bench.progress(Progress(f"{FINE_TUNING}: choosing", done, len(LEARNING_RATES)))
    return best(scores)


def _theta0(bench: Bench) -> Weights:
    return bench.distilled.initial_weights(
        bench.network, networks_for(bench.seed, "held-out network", [0])
    )


def _accuracy(bench: Bench, weights: Weights) -> float:
    return test_networks(bench.network, weights, bench.test, bench.distilled.objective).mean
