"""Distilled data for one network, compared with the same network trained on other data."""

import statistics
from dataclasses import dataclass

from ..artefact import DistilledData
from ..baselines import Layout, RandomReal
from ..core.device import DeviceLike
from ..core.initialization import networks_for
from ..core.values import one_line
from ..data import LabelledData
from ..data.running_statistics import Statistics
from ..evaluation import evaluate, test_networks, train_on_all
from ..evaluation.rate_search import LEARNING_RATES, search
from ..progress import ProgressCallback, silent
from .context import TableNetworks
from .image_sets import HELD_OUT

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

    __repr__ = one_line

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
    device: DeviceLike = "auto",
    progress: ProgressCallback = silent,
) -> Comparison:
    """Compares distilled data for a fixed initialization with other training data.

    The learning rate and epochs of the random real images are chosen on held-out training
    data, from the paper's choices, the mean learned rate and 1.
    """
    networks = TableNetworks(distilled, distilled.network(device=device))
    network, objective = networks.network, distilled.objective
    rest, validation = train.hold_out(HELD_OUT, seed=0)
    layout = Layout.of(network, *distilled.inputs.shape[:2])
    sets = [RandomReal().draw(rest, layout, number) for number in range(SETS)]

    # Beyond the paper's choices: real images must not lose because the range was too narrow.
    mean_rate = float(distilled.learning_rates.mean())
    choice = search(
        lambda number, rate: networks.scores(sets[number], rate, validation),
        sets=SETS,
        rates=(mean_rate, *LEARNING_RATES, 1.0),
        higher_is_better=objective.higher_is_better,
        progress=progress,
    )
    schedules = [networks.scheduled(images, choice) for images in sets]
    tested = [networks.train_and_test(steps, test_data)[0] for steps in schedules]
    theta0 = networks.sample(networks_for(0, "held-out network", [0]))
    fully_trained = train_on_all(network, theta0, train, objective, progress=progress)
    statistics = Statistics.of_data(train, network)
    return Comparison(
        untrained=test_networks(network, theta0, test_data, objective, statistics).mean,
        distilled=evaluate(distilled, test_data, device=device).mean,
        random_real=tuple(result.mean for result in tested),
        rate=float(choice.rate),
        epochs=choice.epochs,
        all_real=test_networks(network, fully_trained, test_data, objective, statistics).mean,
    )
