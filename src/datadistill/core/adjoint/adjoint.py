"""Adjoints: how the gradient of the outer loss travels back through the updates."""

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor

from ..distilled import Steps
from ..engine import Engine
from ..learner import Learner
from ..network import Weights
from ..seam import Seam
from ..update.rule import UpdateRule

OuterLoss = Callable[[Weights], Tensor]
"""θ_T → the losses (J,) of J networks on real data."""


class Adjoint(Seam, seam="adjoint"):
    """A way to differentiate the outer loss with respect to all steps.

    Attributes:
        keeps_graph: Whether it differentiates through ``engine.gradient`` itself. Parts of a step
            that are computed one after the other have no such graph.
    """

    keeps_graph: ClassVar[bool] = False

    @abstractmethod
    def __call__(
        self,
        rule: UpdateRule,
        engine: Engine,
        learner: Learner,
        steps: Steps,
        outer_loss: OuterLoss,
        generator: torch.Generator,
    ) -> tuple[Tensor, Steps]:
        """Trains J networks and differentiates their outer losses.

        Args:
            rule: The update rule.
            engine: What computes the gradients of the updates.
            learner: The learner before the first update.
            steps: All steps, of each network: see :meth:`Steps.for_each`.
            outer_loss: The losses (J,) on real data.
            generator: Draws whatever is random, the same for all networks.

        Returns:
            The losses (J,) and the gradient of their mean, in the shape of ``steps``. Labels that
            are class indices have no gradient; it is returned as zeros.
        """
