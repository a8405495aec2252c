"""The plain parametrisation: inputs as they are, learning rates kept positive by softplus."""

from dataclasses import dataclass
from types import MappingProxyType

import torch

from ..distilled import Steps, positive, raw_of
from ..objective import Objective
from .parametrisation import RATES, Parameters, Parametrisation, Tree


@dataclass(frozen=True)
class Plain(Parametrisation, name="plain"):
    """x̃ itself, and raw rates with η̃ = softplus(raw).

    Attributes:
        learn_rates: Whether the learning rates are learned.
        learn_labels: Whether the labels are learned, as probabilities or targets; None stands for
            what is usual for the objective.
    """

    learn_rates: bool = True
    learn_labels: bool | None = None

    settings = MappingProxyType({"learn_rates": "learn_rates", "learn_labels": "learn_labels"})

    def start(self, steps: Steps, objective: Objective, outputs: torch.Size) -> Parameters:
        soft = objective.learns_labels if self.learn_labels is None else self.learn_labels
        labels = steps.labels
        if soft:
            labels = objective.soft_labels(outputs, labels.cpu()).to(steps.inputs)
        # In float32, so that every dtype starts alike.
        raw = raw_of(steps.learning_rates).float().to(steps.inputs)
        tensors = {"inputs": steps.inputs, "labels": labels, RATES: raw}
        learned = {"inputs": True, "labels": soft, RATES: self.learn_rates}
        return Parameters(
            {name: tensor for name, tensor in tensors.items() if learned[name]},
            {name: tensor for name, tensor in tensors.items() if not learned[name]},
        )

    def steps(self, parameters: Parameters) -> Steps:
        tensors = parameters.all
        return Steps(tensors["inputs"], tensors["labels"], positive(tensors[RATES]))

    def pull_back(self, parameters: Parameters, gradient: Steps) -> Tree:
        """As it is; dη̃/d raw of softplus is the sigmoid."""
        slope = parameters.all[RATES].sigmoid()
        found = {"inputs": gradient.inputs, "labels": gradient.labels}
        found[RATES] = gradient.learning_rates * slope
        return {name: found[name] for name in parameters.learned}
