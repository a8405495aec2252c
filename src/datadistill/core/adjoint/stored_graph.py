"""The stored graph: autograd through all updates at once."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..distilled import Steps
from ..engine import Engine
from ..gradients import leaf, products
from ..learner import Learner
from ..update.loop import updated
from ..update.rule import UpdateRule
from .adjoint import Adjoint, OuterLoss


@dataclass(frozen=True)
class StoredGraph(Adjoint, name="stored-graph"):
    """Exact, and keeps the graphs of all T updates: faster where memory allows."""

    is_exact = keeps_graph = True

    def taped(self, updates: int) -> int:
        return 0

    def __call__(
        self,
        rule: UpdateRule,
        engine: Engine,
        learner: Learner,
        steps: Steps,
        outer_loss: OuterLoss,
        generator: torch.Generator,
    ) -> tuple[Tensor, Steps]:
        steps = replace(steps, **{name: leaf(own) for name, own in steps.tensors.items()})
        with torch.enable_grad():
            losses = outer_loss(updated(rule, engine, learner, steps).weights)
            return losses.detach(), Steps(*products([losses.mean()], [*steps.tensors.values()]))
