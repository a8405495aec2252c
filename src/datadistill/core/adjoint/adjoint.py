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
        is_exact: Whether it gives the gradient of all updates, as every exact one does.
        keeps_graph: Whether it differentiates through ``engine.gradient`` itself. Parts of a step
            that are computed one after the other have no such graph.
        pool: How many networks train along from outer step to outer step; 0: every outer step has
            new ones.
        updates: After how many updates each of these starts anew.
    """

    is_exact: ClassVar[bool] = False
    keeps_graph: ClassVar[bool] = False
    pool: int = 0
    updates: int = 0

    def placed(
        self, share: float, norms: Callable[[], Tensor], generator: torch.Generator
    ) -> "Adjoint":
        """The adjoint of one outer step, where it is not the same for all of them.

        Args:
            share: How much of the run is done, from 0 to 1.
            norms: Computes the norms of the gradients of all updates, (T,), of a network that is
                trained for this alone.
            generator: Draws whatever is random.
        """
        return self

    def taped(self, updates: int) -> int:
        """How many of so many updates are made on the engine's tape, to go back through them."""
        return updates

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
