"""Measuring distilled data on held-out training data while they are distilled."""

from dataclasses import dataclass
from functools import cached_property, partial

from ..artefact import DistilledData
from ..core.network import Network
from ..data import LabelledData
from ..data.features import Features
from ..engine.frozen_prefix import Split, steps_through
from ..engine.team import Team
from .evaluating import evaluate
from .held_out import HeldOut
from .result import Evaluation
from .scoring import train_and_score


@dataclass(frozen=True)
class Validation:
    """Held-out training data, and the network that is trained to measure on them.

    Attributes:
        data: The held-out data.
        network: The whole network.
        networks: How many networks are trained.
        split: The network in two, where its first layers are frozen: they see the data once.
        team: The processes among which networks are divided.
    """

    data: LabelledData
    network: Network
    networks: int
    split: Split | None
    team: Team

    def measure(self, distilled: DistilledData) -> Evaluation:
        """Trains networks on distilled data and tests them."""
        split, features, network = self.split, self._features, self.network
        if split is None or features is None or not features.fit:
            device = str(network.device)
            return evaluate(
                distilled, self.data, networks=self.networks, device=device, team=self.team
            )
        sample = partial(distilled.initial_weights, network)
        return train_and_score(
            steps_through(split.prefix, distilled.steps.to(network.device, network.dtype)),
            HeldOut(split.head, sample, self.networks, team=self.team),
            features.whole(),
            distilled.objective,
            rule=distilled.rule,
        )[0]

    @cached_property
    def _features(self) -> Features | None:
        split, network = self.split, self.network
        return Features(self.data, split.prefix, network.device, network.dtype) if split else None
