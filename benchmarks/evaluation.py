"""Speed and memory of evaluation: networks in groups against a loop over the networks.

LeNets are trained 30 steps (10 steps × 3 epochs of 10 images) on 100 images and tested on MNIST's
10,000; and a learning rate and a number of epochs are searched for such images, as for baselines.
The loop trains networks one by one, by plain PyTorch; it takes some of them, and its time per
network is what counts. It first chooses between one thread and torch's default, and between test
batches. Then both sides take turns, and the best of each counts. Peak memory is what 48 networks
add to that of a process of its own, one for each bound. That both sides reach the same is checked
first, in float64.
"""

import itertools
import json
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F

import datadistill as dd
from benchmarks.peak import growth_in_own_process, peak_memory
from benchmarks.timing import THREADS
from datadistill.baselines import Layout, RandomReal
from datadistill.core.distilled import Steps
from datadistill.core.initialization import RandomInit, networks_for
from datadistill.core.network import Network
from datadistill.evaluation import HeldOut, train_and_score
from datadistill.evaluation.rate_search import (
    EPOCHS,
    LEARNING_RATES,
    Rate,
    Score,
    search,
    with_rate,
)
from datadistill.evaluation.result import Evaluation

NETWORKS, LOOPED = 200, 40
SETS, CHOOSING_NETWORKS, CHOOSING_EXAMPLES = 4, 20, 1024  # as for the baselines
CHECKED = 24  # networks
BATCHES = (100, 500, 1000)
BOUNDS = (2**26, 2**28, 2**30)


class Problem(NamedTuple):
    """An architecture, and the real data of MNIST."""

    network: Network
    train: dd.LabelledData
    test: dd.LabelledData

    def images(self, number: int = 0) -> Steps:
        """A set of random real images as 10 steps × 3 epochs."""
        layout = Layout.of(self.network, steps=10, images=10)
        images = RandomReal().draw(self.train, layout, number)
        return with_rate(images, 0.02, epochs=3)


def problem(data_dir: Path | None) -> Problem:
    """LeNet and MNIST."""
    train, test = dd.data.load("mnist", dd.data.data_folder(data_dir))
    return Problem(Network(dd.models.LeNet(), train.example()), train, test)


def measure(*, quick: bool = False, data_dir: Path | None = None) -> dict[str, Any]:
    """Both ratios of times, and the peak memory under several bounds."""
    place = [data_dir] if data_dir else []
    rows = [
        {
            "what": f"peak memory against its bound of {bound / 1e6:.0f} MB",
            "ours": grown / 1e6,
            "ratio": grown / bound,
            "at most": 1,
        }
        for bound in (BOUNDS[1:2] if quick else BOUNDS)
        for grown in [growth_in_own_process("benchmarks.evaluation", bound, *place)]
    ]
    given = problem(data_dir)
    check(given)
    trials, looped = (2, 10) if quick else (3, LOOPED)
    return {
        "rows": [
            compare(testing(given, looped), f"{NETWORKS} networks", 4, trials),
            compare(choosing(given, 1 if quick else SETS), "search of rate and epochs", 4, trials),
            *rows,
        ]
    }


def in_groups(
    given: Problem,
    steps: Steps,
    test: dd.LabelledData,
    networks: int,
    after: Sequence[int] | None = None,
    memory: int = 2**30,
) -> list[Evaluation]:
    """Networks by the library."""
    sample = partial(RandomInit().sample, given.network)
    held_out = HeldOut(given.network, sample, networks, memory=memory)
    return train_and_score(steps, held_out, test, dd.Classification(), after=after)


def alone(
    given: Problem,
    steps: Steps,
    test: dd.LabelledData,
    number: int,
    batch: int,
    after: Sequence[int] | None = None,
) -> list[float]:
    """One network by plain PyTorch: its accuracy after some of the updates, or after the last."""
    network = given.network
    theta0 = RandomInit().sample(network, networks_for(0, "held-out network", [number]))
    module = network.module({name: w[0] for name, w in theta0.items()})
    parameters = list(module.parameters())
    found: list[float] = []
    for t, step in enumerate(steps, 1):
        gradients = torch.autograd.grad(
            F.cross_entropy(module(step.inputs), step.labels), parameters
        )
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.sub_(step.learning_rate * gradient)
        if t in (after or [len(steps.schedule)]):
            found.append(_accuracy(module, test, batch, network))
    return found


@torch.no_grad()
def _accuracy(
    module: torch.nn.Module, test: dd.LabelledData, batch: int, network: Network
) -> float:
    right = 0
    for begin in range(0, len(test), batch):
        inputs, labels = test.batch(slice(begin, begin + batch), network.device, network.dtype)
        right += int((module(inputs).argmax(1) == labels).sum())
    return right / len(test)


def check(given: Problem) -> None:
    """Stops unless both sides reach exactly the same, in float64.

    In float32 they need not: training makes so much of the last bit that one network in twenty
    ends points apart, as it does between plain float32 and plain float64.
    """
    network = Network(given.network.module().double(), given.train.example())
    double, test = given._replace(network=network), given.test.part(torch.arange(1000), "test")
    steps = double.images().to(network.device, network.dtype)
    (found,) = in_groups(double, steps, test, CHECKED)
    expected = [alone(double, steps, test, number, 100)[0] for number in range(CHECKED)]
    if list(found.values) != expected:
        raise SystemExit(f"Networks in groups reach {found}, alone they reach {expected}.")


class Sides(NamedTuple):
    """The same work on both sides: ours on many networks, the loop on some, with a test batch."""

    ours: Callable[[], object]
    networks: int
    loop: Callable[[int, int], object]
    looped: int


def testing(given: Problem, looped: int) -> Sides:
    """Training on distilled data, and the test on all test data."""
    steps = given.images()

    def loop(networks: int, batch: int) -> None:
        for number in range(networks):
            alone(given, steps, given.test, number, batch)

    return Sides(lambda: in_groups(given, steps, given.test, NETWORKS), NETWORKS, loop, looped)


def choosing(given: Problem, sets: int) -> Sides:
    """The search: each rate and set trained for the most epochs and tested after the others."""
    real = [given.images(number) for number in range(sets)]
    held_out = given.train.part(torch.arange(CHOOSING_EXAMPLES), "validation")
    after = [epochs * 10 for epochs in EPOCHS]

    def steps_of(number: int, rate: Rate) -> Steps:
        return with_rate(real[number], float(rate), max(EPOCHS))

    def score(number: int, rate: Rate) -> dict[int, Score]:
        results = in_groups(given, steps_of(number, rate), held_out, CHOOSING_NETWORKS, after)
        return {e: Score.of(result) for e, result in zip(EPOCHS, results, strict=True)}

    def loop(networks: int, batch: int) -> None:
        trials = itertools.product(range(sets), LEARNING_RATES)
        for number, rate in itertools.islice(trials, networks):
            alone(given, steps_of(number, rate), held_out, 0, batch, after)

    trainings = sets * len(LEARNING_RATES)
    return Sides(lambda: search(score, sets=sets), trainings * CHOOSING_NETWORKS, loop, trainings)


def compare(sides: Sides, what: str, at_least: float, trials: int) -> dict[str, Any]:
    """The best times of both sides per network, in turns."""

    def loop(networks: int, way: tuple[int, int]) -> float:
        torch.set_num_threads(way[0])
        seconds = _seconds(lambda: sides.loop(networks, way[1])) / networks
        torch.set_num_threads(THREADS)
        return seconds

    ways = [(threads, batch) for threads in sorted({1, THREADS}) for batch in BATCHES]
    best = min(ways, key=lambda way: min(loop(1, way) for _ in range(3)))
    ours, theirs = list[float](), list[float]()
    for _ in range(trials):
        ours.append(_seconds(sides.ours) / sides.networks)
        theirs.append(loop(sides.looped, best))
    return {
        "what": f"{what}, ms a network",
        "loop": 1e3 * min(theirs),
        "ours": 1e3 * min(ours),
        "ratio": min(theirs) / min(ours),
        "at least": at_least,
    }


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def _one_evaluation(memory: int, data_dir: Path | None) -> int:
    """The growth of this process's peak; call it once in a process."""
    given = problem(data_dir)
    steps = given.images()
    alone(given, steps, given.test, 0, 100)  # what libraries set up at first use
    before = peak_memory()
    in_groups(given, steps, given.test, 48, memory=memory)
    return peak_memory() - before


if __name__ == "__main__":
    found = _one_evaluation(int(sys.argv[1]), Path(sys.argv[2]) if sys.argv[2:] else None)
    print(json.dumps(found))
