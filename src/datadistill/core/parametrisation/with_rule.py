"""Distilled data with coefficients of the update rule that are learned along with them."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..distilled import Steps
from ..objective import Objective
from .parametrisation import RULE, Parameters, Parametrisation, Tree

LARGEST = 12.0
"""Of a logit or a logarithm: beyond it a momentum would be rounded to 1."""


@dataclass(frozen=True)
class WithRule(Parametrisation):
    """Another parametrisation, and the coefficients of the update rule as they are.

    Attributes:
        inner: The parametrisation of the distilled data.
        coefficients: What is learned of the update rule, as it starts: (K,).
    """

    inner: Parametrisation
    coefficients: Tensor

    def start(self, steps: Steps, objective: Objective, outputs: torch.Size) -> Parameters:
        learned, constants = self.inner.start(steps, objective, outputs)
        return Parameters({**learned, RULE: self.coefficients.to(steps.inputs)}, constants)

    def steps(self, parameters: Parameters) -> Steps:
        made = self.inner.steps(_without(parameters))
        return replace(made, coefficients=parameters.learned[RULE])

    @property
    def of_images(self) -> Parametrisation:
        """The other one."""
        return self.inner.of_images

    def project(self, learned: Tree) -> Tree:
        """Coefficients stay where they can be told from their limits."""
        rest = {name: own for name, own in learned.items() if name != RULE}
        return {**self.inner.project(rest), RULE: learned[RULE].clamp(-LARGEST, LARGEST)}

    def pull_back(self, parameters: Parameters, gradient: Steps) -> Tree:
        found = self.inner.pull_back(_without(parameters), gradient)
        own = gradient.coefficients
        return {**found, RULE: torch.zeros_like(parameters.learned[RULE]) if own is None else own}


def _without(parameters: Parameters) -> Parameters:
    """The parameters of the distilled data."""
    rest = {name: own for name, own in parameters.learned.items() if name != RULE}
    return parameters._replace(learned=rest)
