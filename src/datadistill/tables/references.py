"""The rows of the baseline table that train by no steps: K-NN, and all real data."""

import functools

from ..baselines import neighbour_accuracy
from ..baselines.nearest_neighbours import CHOICES, Norm
from ..core.initialization import networks_for
from ..data import LabelledData
from ..evaluation import test_networks, train_on_all
from ..evaluation.search import Score, best
from ..progress import Progress
from .context import FIGURES, Bench, Values


def neighbours(bench: Bench, baseline: str) -> tuple[Values, str]:
    """Accuracies of K-NN classification, one for each set, and the norm and K chosen."""
    name, sets = f"K-NN {baseline}", range(bench.counts.sets)

    def accuracy(data: LabelledData, number: int, norm: Norm, k: int) -> list[float]:
        steps = bench.images(baseline, number)
        return [neighbour_accuracy(steps, data, norm=norm, neighbours=k)]

    scores: dict[tuple[Norm, int], list[Score]] = {choice: [] for choice in CHOICES}
    for number in sets:
        for norm, k in CHOICES:
            key = {"what": name, "set": number, "norm": norm, "k": k, **bench.selected}
            compute = functools.partial(accuracy, bench.choosing, number, norm, k)
            scores[norm, k] += [Score(bench.parts.get(key, compute, FIGURES, 1)[0])]
        bench.progress(Progress(f"{name}: choosing", number + 1, len(sets)))
    norm, k = best(scores)
    values: list[tuple[float, ...]] = []
    for number in sets:
        key = {"what": name, "set": number, "norm": norm, "k": k}
        compute = functools.partial(accuracy, bench.test, number, norm, k)
        values.append(tuple(bench.parts.get(key, compute, FIGURES, 1)))
        bench.progress(Progress(name, number + 1, len(sets)))
    return tuple(values), f"{norm}, K = {k}"


def all_real(bench: Bench) -> tuple[Values, str]:
    """Figures of networks trained on the whole training set, and for how many epochs."""
    count = bench.few(bench.counts.full_networks)
    epochs = min(max(300_000 // len(bench.train), 5), 30)
    objective = bench.distilled.objective

    def compute(number: int) -> list[float]:
        generators = networks_for(bench.seed, "held-out network", [number])
        weights = train_on_all(
            bench.network,
            bench.sample(generators),
            bench.train,
            objective,
            epochs=epochs,
            progress=bench.shown("all real", number, count, epochs),
        )
        return list(test_networks(bench.network, weights, bench.test, objective).values)

    values: list[float] = []
    for number in range(count):
        key = {"what": "all real", "network": number, "epochs": epochs, "seed": bench.seed}
        values += bench.parts.get(key, functools.partial(compute, number), FIGURES, 1)
        bench.progress(Progress("all real", (number + 1) * epochs, count * epochs))
    return (tuple(values),), f"Adam, {epochs} epochs"
