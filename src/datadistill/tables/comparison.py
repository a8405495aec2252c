"""What distilled data for one network are worth: the same network trained on other data."""

import functools
import statistics
from dataclasses import dataclass

from ..artefact import DistilledData
from ..baselines import random_real
from ..core.initialization import networks_for
from ..data import LabelledData
from ..evaluation import curve, evaluate, test_networks, train_on_all
from ..evaluation.search import (
    EPOCHS,
    LEARNING_RATES,
    Choice,
    Rate,
    Score,
    scheduled,
    search,
)
from ..progress import ProgressCallback, silent

SETS = 10
"""How many sets of random real images are drawn."""


@dataclass(frozen=True)
class Comparison:
    """Metrics of the same network on the same test data.

    Attributes:
        untrained: At its initial weights.
        distilled: Trained on the distilled data.
        random_real: Trained on as many random real images, one figure per set drawn.
        rate: Learning rate of the random real images, chosen on held-out training data.
        epochs: Their number of epochs, chosen likewise.
        all_real: Trained on the whole training set.
    """

    untrained: float
    distilled: float
    random_real: tuple[float, ...]
    rate: float
    epochs: int
    all_real: float

    @property
    def random_real_mean(self) -> float:
        """Mean over the sets."""
        return statistics.mean(self.random_real)

    @property
    def random_real_std(self) -> float:
        """Standard deviation over the sets."""
        return statistics.stdev(self.random_real)


def compare(
    distilled: DistilledData,
    train: LabelledData,
    test_data: LabelledData,
    *,
    device: str = "auto",
    progress: ProgressCallback = silent,
) -> Comparison:
    """Compares distilled data for a fixed initialization with other training data.

    The learning rate and epochs of the random real images are chosen on held-out training
    data, from the paper's choices, the mean learned rate and 1.
    """
    network, objective = distilled.network(device=device), distilled.objective
    sample = functools.partial(distilled.initial_weights, network)
    train_and_test = functools.partial(
        curve, network=network, sample=sample, objective=objective, networks=1
    )
    schedule = distilled.header.schedule
    rest, validation = train.hold_out(0.1, seed=0)
    sets = [
        random_real(
            rest,
            network,
            classes=train.classes,
            steps=schedule.steps,
            images_per_class=schedule.images // train.classes,
            seed=number,
        )
        for number in range(SETS)
    ]

    def measure(number: int, rate: Rate) -> dict[int, Score]:
        steps = scheduled(sets[number], Choice(rate, max(EPOCHS)))
        after = [epochs * schedule.steps for epochs in EPOCHS]
        results = train_and_test(steps, data=validation, after=after)
        return {e: Score.of(result) for e, result in zip(EPOCHS, results, strict=True)}

    # Beyond the paper's choices: real images must not lose because the range was too narrow.
    mean_rate = float(distilled.learning_rates.mean())
    rates = (mean_rate, *LEARNING_RATES, 1.0)
    better = objective.higher_is_better
    choice = search(measure, sets=SETS, rates=rates, higher_is_better=better, progress=progress)
    tested = [train_and_test(scheduled(steps, choice), data=test_data)[0] for steps in sets]
    theta0 = sample(networks_for(0, "held-out network", [0]))
    fully_trained = train_on_all(network, theta0, train, objective, progress=progress)
    return Comparison(
        untrained=test_networks(network, theta0, test_data, objective).mean,
        distilled=evaluate(distilled, test_data, device=device).mean,
        random_real=tuple(result.mean for result in tested),
        rate=float(choice.rate),
        epochs=choice.epochs,
        all_real=test_networks(network, fully_trained, test_data, objective).mean,
    )
