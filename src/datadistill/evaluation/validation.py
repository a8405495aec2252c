"""Measuring distilled data on held-out training data while they are distilled."""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from ..artefact import DistilledData
from ..core.network import Network
from ..data import LabelledData
from ..data.features import Features
from ..engine.frozen_prefix import Split, steps_through
from ..engine.team import ALONE, Team
from .held_out import VALIDATION, HeldOut
from .result import Evaluation
from .scoring import train_and_score


@dataclass(frozen=True)
class Validation:
    """Held-out training data, and the networks that are trained to measure on them.

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
    split: Split | None = None
    team: Team = ALONE

    def measure(self, distilled: DistilledData, statistics: Any = None) -> Evaluation:
        """Trains networks on distilled data and tests them: others than those that are reported."""
        split, features, network, data = self.split, self._features, self.network, self.data
        steps = distilled.steps.to(network.device, network.dtype)
        if split and features and features.fit:
            steps = steps_through(split.prefix, steps)
            network, data = split.head, features.whole()
        choosing = distilled.initialization.choosing
        draw = choosing.sample if choosing else distilled.initial_weights
        held_out = HeldOut(
            network,
            partial(draw, self.network),
            self.networks,
            team=self.team,
            purpose=VALIDATION,
        )
        return train_and_score(
            steps,
            held_out,
            data,
            distilled.objective,
            rule=distilled.rule,
            statistics=statistics,
        )[0]

    @cached_property
    def _features(self) -> Features | None:
        split, network = self.split, self.network
        return Features(self.data, split.prefix, network.device, network.dtype) if split else None
