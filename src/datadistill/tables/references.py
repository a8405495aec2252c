"""The rows of the baseline table that train by no steps: K-NN, all real data, fine-tuning."""

import functools

from ..baselines import neighbour_accuracy
from ..baselines.knn import CHOICES, Norm
from ..core.initialization import networks_for
from ..core.network import Weights
from ..data import LabelledData
from ..data.running_statistics import Statistics
from ..evaluation import test_networks, train_on_all
from ..evaluation.rate_search import Score, best
from ..evaluation.reference import FullTraining, learning_on_all
from ..progress import Progress
from .context import TableContext
from .image_sets import HELD_OUT, ImageSets
from .rows import TableRow

FINE_TUNING = "full fine-tuning"
LEARNING_RATES = (0.0003, 0.001, 0.003)
EPOCHS = (5, 10, 20)
ORDERS = 3
"""Fine-tuning is repeated with so many orders of the training images."""


def neighbours(context: TableContext, sets: ImageSets) -> TableRow:
    """K-NN classification with the images of a baseline, one figure per set."""
    name, numbers = f"K-NN {sets.name}", range(context.counts.sets)

    def accuracy(data: LabelledData, number: int, norm: Norm, k: int) -> list[float]:
        return [neighbour_accuracy(sets[number], data, norm=norm, neighbours=k)]

    scores: dict[tuple[Norm, int], list[Score]] = {choice: [] for choice in CHOICES}
    for number in numbers:
        for norm, k in CHOICES:
            key = {"what": name, **sets.key(number), "norm": norm, "k": k, **context.selected}
            compute = functools.partial(accuracy, context.data.choosing, number, norm, k)
            scores[norm, k] += [Score(context.figures(key, compute, 1)[0])]
        context.progress(Progress(f"{name}: choosing", number + 1, len(numbers)))
    norm, k = best(scores)
    values: list[tuple[float, ...]] = []
    for number in numbers:
        key = {"what": name, **sets.key(number), "norm": norm, "k": k}
        compute = functools.partial(accuracy, context.data.test, number, norm, k)
        values.append(tuple(context.figures(key, compute, 1)))
        context.progress(Progress(name, number + 1, len(numbers)))
    return TableRow(name, tuple(values), f"{norm}, K = {k}")


def all_real(context: TableContext) -> TableRow:
    """Networks trained by Adam on the whole training set."""
    train, networks = context.data.train, context.networks
    count = networks.few(context.counts.full_networks)
    epochs = context.counts.full_epochs or min(max(300_000 // len(train), 5), 30)

    def compute(number: int) -> list[float]:
        weights = train_on_all(
            networks.network,
            _initial_weights(context, number),
            train,
            context.distilled.objective,
            FullTraining(epochs),
            context.shown("all real", number, count, epochs),
        )
        return _accuracies(context, weights, context.data.test)

    values: list[float] = []
    for number in range(count):
        key = {"what": "all real", "network": number, "epochs": epochs, "seed": networks.seed}
        values += context.figures(key, functools.partial(compute, number), 1)
        context.progress(Progress("all real", (number + 1) * epochs, count * epochs))
    return TableRow("all real", (tuple(values),), f"Adam, {epochs} epochs")


def fine_tuning(context: TableContext) -> TableRow:
    """The pre-trained network trained on all real data, by Adam in minibatches of 64.

    The learning rate and the number of epochs are the best on held-out training data; then all
    training data are used, in several orders.
    """
    lr, epochs = _choose_fine_tuning(context)

    def compute(order: int) -> list[float]:
        theta0, objective = _initial_weights(context), context.distilled.objective
        *_, weights = learning_on_all(
            context.networks.network,
            theta0,
            context.data.train,
            objective,
            FullTraining(epochs, lr=lr, seed=order),
        )
        return _accuracies(context, weights, context.data.test)

    values: list[float] = []
    for order in range(ORDERS):
        key = {"what": FINE_TUNING, "order": order, "lr": lr, "epochs": epochs}
        values += context.figures(key, functools.partial(compute, order), 1)
        context.progress(Progress(FINE_TUNING, order + 1, ORDERS))
    chosen = f"Adam, lr {lr:g}, {epochs} epochs"
    return TableRow(FINE_TUNING, tuple((one,) for one in values), chosen)


def _choose_fine_tuning(context: TableContext) -> tuple[float, int]:
    """The learning rate and epochs that are best on held-out training data."""
    rest, validation = context.data.train.hold_out(HELD_OUT, seed=0)
    network, objective = context.networks.network, context.distilled.objective

    def compute(lr: float) -> list[float]:
        theta0 = _initial_weights(context)
        how = FullTraining(max(EPOCHS), lr=lr)
        trained = learning_on_all(network, theta0, rest, objective, how)
        return [
            _accuracies(context, weights, validation)[0]
            for epoch, weights in enumerate(trained, 1)
            if epoch in EPOCHS
        ]

    scores: dict[tuple[float, int], list[Score]] = {}
    for done, lr in enumerate(LEARNING_RATES, 1):
        key = {"what": f"{FINE_TUNING}: choosing", "lr": lr, "epochs": EPOCHS}
        found = context.figures(key, functools.partial(compute, lr), len(EPOCHS))
        scores |= {(lr, e): [Score(score)] for e, score in zip(EPOCHS, found, strict=True)}
        context.progress(Progress(f"{FINE_TUNING}: choosing", done, len(LEARNING_RATES)))
    return best(scores)


def _initial_weights(context: TableContext, number: int = 0) -> Weights:
    """The weights of one of the networks that are reported."""
    generators = networks_for(context.networks.seed, "held-out network", [number])
    return context.networks.sample(generators)


def _accuracies(context: TableContext, weights: Weights, data: LabelledData) -> list[float]:
    network, objective = context.networks.network, context.distilled.objective
    statistics = Statistics.of_data(context.data.train, network)
    return [*test_networks(network, weights, data, objective, statistics).values]
