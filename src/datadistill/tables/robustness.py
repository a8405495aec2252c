"""DD-Ranking's scores: how much of an accuracy is due to the images, not to labels or views."""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from torch import nn

from ..artefact import DistilledData
from ..artefact.real_data import real_data
from ..baselines import Layout, RandomReal
from ..core.device import DeviceLike
from ..core.grad_mode import with_gradients
from ..core.initialization import RandomInit, networks_for
from ..core.view import Dsa, View
from ..data.running_statistics import Statistics
from ..evaluation import OrdinaryTraining, evaluate_ordinary, test_networks, train_on_all
from ..evaluation.reference import FullTraining
from ..given import typed
from ..progress import ProgressCallback
from ..showing import shown

WEIGHT = 0.5
DSA = Dsa()


def score(alpha: float) -> float:
    """(e^α − e⁻¹) / (e − e⁻¹): from 0 at α = −1 to 1 at α = 1."""
    return (math.exp(alpha) - math.exp(-1)) / (math.e - math.exp(-1))


@dataclass(frozen=True)
class Robustness:
    """Accuracies between 0 and 1, all on the same networks and test data, and their scores.

    Attributes:
        full: Of all real data, with hard labels.
        hard: Of the distilled images with hard labels.
        own: Of the distilled images with their own labels, soft if they are.
        random: Of as many random real images, by the same training.
        own_viewed: Of the distilled images, augmented.
        random_viewed: Of random real images, augmented.
        weight: Weight of what is better than random images, and of what is augmented.
    """

    full: float
    hard: float
    own: float
    random: float
    own_viewed: float
    random_viewed: float
    weight: float = WEIGHT

    @property
    def hard_label_recovery(self) -> float:
        """What distilled images with hard labels lack of all real data."""
        return self.full - self.hard

    @property
    def improvement_over_random(self) -> float:
        """What distilled images are better than random ones."""
        return self.own - self.random

    @property
    def label_robust_score(self) -> float:
        """High where images are good without soft labels, and better than random ones."""
        gained = self.weight * self.improvement_over_random
        return score(gained - (1 - self.weight) * self.hard_label_recovery)

    @property
    def augmentation_robust_score(self) -> float:
        """High where images are better than random ones with and without augmentation."""
        viewed = self.weight * (self.own_viewed - self.random_viewed)
        return score(viewed + (1 - self.weight) * self.improvement_over_random)

    def as_json(self) -> dict[str, float]:
        """All figures."""
        names = "hard_label_recovery", "improvement_over_random"
        scores = "label_robust_score", "augmentation_robust_score"
        return {**asdict(self), **{name: getattr(self, name) for name in (*names, *scores)}}


@typed
@with_gradients
def measure_robustness(
    distilled: DistilledData,
    train: Any,
    test: Any,
    training: OrdinaryTraining,
    *,
    networks: int = 5,
    module: nn.Module | None = None,
    view: View = DSA,
    full_epochs: int = 30,
    seed: int = 0,
    device: DeviceLike = "auto",
    progress: bool | ProgressCallback = False,
) -> Robustness:
    """Measures DD-Ranking's scores on fresh networks with random weights.

    Their formulas; their training, unless told otherwise; networks and code are ours, so the scores
    are not those of its leaderboard. Random images have hard labels. All real data are trained on
    by Adam.

    Args:
        distilled: Distilled data for classification.
        train: The real training data, from which random images are drawn.
        test: The real test data.
        training: How networks are trained on the images.
        networks: How many networks for each accuracy.
        module: The network, where it is not built in.
        view: The augmentation.
        full_epochs: Passes over all real data.
        seed: Which networks and orders.
        device: Where to compute.
        progress: True for bars, or a callback.
    """
    train = real_data(distilled, train, "train")
    test = real_data(distilled, test, "test")
    fresh = fresh_networks(distilled)
    network = distilled.network(module, device)
    layout = Layout.of(network, *distilled.inputs.shape[:2])
    random = replace(fresh, steps=RandomReal().draw(train, layout, seed))
    augmented = replace(training, view=view)
    settings: dict[str, Any] = {"networks": networks, "seed": seed, "device": device}
    with shown(progress) as show:

        def accuracy(images: DistilledData, how: OrdinaryTraining) -> float:
            found = evaluate_ordinary(images, test, how, module=module, progress=show, **settings)
            return found.mean

        theta0 = RandomInit().sample(network, networks_for(seed, "held-out network", [0]))
        how, statistics = FullTraining(full_epochs), Statistics.of_data(train, network)
        weights = train_on_all(network, theta0, train, distilled.objective, how, show)
        return Robustness(
            full=test_networks(network, weights, test, distilled.objective, statistics).mean,
            hard=accuracy(fresh, replace(training, hard_labels=True)),
            own=accuracy(fresh, training),
            random=accuracy(random, training),
            own_viewed=accuracy(fresh, augmented),
            random_viewed=accuracy(random, augmented),
        )


def fresh_networks(distilled: DistilledData) -> DistilledData:
    """The distilled data for networks with random weights, whatever they were made for."""
    scheme = distilled.header.initialization.scheme or "xavier-normal"
    return distilled.with_initialization(RandomInit(scheme))
