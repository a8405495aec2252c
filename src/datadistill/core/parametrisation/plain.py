"""The plain parametrisation: inputs as they are, learning rates kept positive by softplus."""

from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import Tensor

from ...errors import ConfigError
from ..distilled import Steps, positive, raw_of
from ..gradients import leaves, products
from ..objective import Objective
from .labels import LabelKind, labels_of, pulled_back, start_of
from .parametrisation import LABELS, RATES, Parameters, Parametrisation, Tree


@dataclass(frozen=True)
class Plain(Parametrisation, name="plain"):
    """x̃ itself, and raw rates with η̃ = softplus(raw).

    A class that keeps inputs in another way writes :meth:`start_inputs` and :meth:`inputs` anew.

    Attributes:
        learn_rates: Whether the learning rates are learned.
        learn_labels: Whether the labels are learned, as probabilities or targets; None stands for
            what is usual for the objective.
        labels: How the labels are kept; None: as ``learn_labels`` says.
    """

    learn_rates: bool = True
    learn_labels: bool | None = None
    labels: LabelKind | None = None

    settings = MappingProxyType(
        {"learn_rates": "learn_rates", "learn_labels": "learn_labels", "labels": "labels"}
    )

    def __post_init__(self) -> None:
        if None not in (self.labels, self.learn_labels) and (
            (self.labels != "hard") != self.learn_labels
        ):
            raise ConfigError(
                f"labels is {self.labels}, but learn_labels is {self.learn_labels}.",
                "Leave learn_labels out.",
            )

    def start(self, steps: Steps, objective: Objective, outputs: torch.Size) -> Parameters:
        kind = self._kind(objective)
        labels = start_of(kind, steps.labels, objective, outputs).to(steps.inputs.device)
        if kind != "hard":
            labels = labels.to(steps.inputs)
        # In float32, so that every dtype starts alike.
        raw = raw_of(steps.learning_rates).float().to(steps.inputs)
        tensors = {**self.start_inputs(steps.inputs), LABELS: labels, RATES: raw}
        fixed = {LABELS: kind == "hard", RATES: not self.learn_rates}
        return Parameters(
            {name: tensor for name, tensor in tensors.items() if not fixed.get(name)},
            {name: tensor for name, tensor in tensors.items() if fixed.get(name)},
        )

    def start_inputs(self, inputs: Tensor) -> Tree:
        """What is learned of the inputs, from those to start with."""
        return {"inputs": inputs}

    def inputs(self, parameters: Tree) -> Tensor:
        """The inputs x̃ (steps, images, …), a differentiable function of what is learned."""
        return parameters["inputs"]

    def steps(self, parameters: Parameters) -> Steps:
        tensors = parameters.all
        labels = labels_of(self._kept(parameters), tensors[LABELS])
        return Steps(self.inputs(tensors), labels, positive(tensors[RATES]))

    def pull_back(self, parameters: Parameters, gradient: Steps) -> Tree:
        """Inputs by autograd; of the softmax by hand; dη̃/d raw of softplus is the sigmoid."""
        tensors = parameters.all
        of_inputs = {n: t for n, t in parameters.learned.items() if n not in (LABELS, RATES)}
        learned = leaves(of_inputs)
        with torch.enable_grad():
            made = self.inputs({**tensors, **learned})
        pulled = products([made], [*learned.values()], [gradient.inputs])
        found = dict(zip(learned, pulled, strict=True))
        found[LABELS] = pulled_back(self._kept(parameters), tensors[LABELS], gradient.labels)
        found[RATES] = gradient.learning_rates * tensors[RATES].sigmoid()
        return {name: found[name] for name in parameters.learned}

    def project(self, learned: Tree) -> Tree:
        """Labels that are clipped are never negative."""
        if self.labels != "clipped":
            return learned
        return {**learned, LABELS: learned[LABELS].clamp_min(0)}

    def negative_labels(self, objective: Objective) -> bool:
        return objective.has_classes and self._kind(objective) == "soft"

    def _kind(self, objective: Objective) -> LabelKind:
        learn = objective.learns_labels if self.learn_labels is None else self.learn_labels
        return self.labels or ("soft" if learn else "hard")

    def _kept(self, parameters: Parameters) -> LabelKind:
        """How labels are kept, whatever the objective."""
        return self.labels or ("soft" if LABELS in parameters.learned else "hard")
