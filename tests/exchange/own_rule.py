"""An update rule of a user's own."""

from dataclasses import dataclass

import datadistill as dd
from datadistill.core.network import Weights
from datadistill.core.update.rule import moved


@dataclass(frozen=True)
class Signs(dd.UpdateRule):
    def update(self, learner: dd.Learner, gradient: Weights, step: dd.Step) -> dd.Learner:
        along = {name: g.tanh() for name, g in gradient.items()}
        return dd.Learner(moved(learner.weights, along, step))
