"""Updates by compiled functions, for networks whose layers the engine does not know.

Where a network is many small operations, most of an update's time goes into calling them one by
one. ``torch.compile`` makes few of many. It takes about a minute, so only long runs gain by it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.func import grad, vjp

from ..kernels.library import tell_not_compiled
from .attention import twice_differentiable
from .distilled import Step
from .network import Loss, Network, Weights
from .update import Gradient, Learner, Products, Update, through_graph


class Functions:
    """∇ℓ and its products with some u, compiled for one network at a time.

    Args:
        network: The architecture.
        loss: ℓ.
        backend: What compiles them.

    Attributes:
        failed: Whether they could not be compiled. Then they give None, and never try again.
    """

    def __init__(self, network: Network, loss: Loss, backend: str = "inductor") -> None:
        self.failed = False
        self._network = network

        def loss_of(weights: Weights, inputs: Tensor, labels: Tensor) -> Tensor:
            return loss(network.bare({**network.constants, **weights}, inputs), labels)

        def products(weights: Weights, inputs: Tensor, labels: Tensor, u: Weights) -> Any:
            def gradient(weights: Weights, inputs: Tensor) -> Weights:
                return grad(loss_of)(weights, inputs, labels)

            pulled: Any = vjp
            if labels.is_floating_point():
                g, back = pulled(grad(loss_of), weights, inputs, labels)
                return g, *back(u)
            g, back = pulled(gradient, weights, inputs)
            return g, *back(u), torch.zeros_like(labels)

        self._gradient = torch.compile(
            grad(loss_of), dynamic=False, fullgraph=True, backend=backend
        )
        self._products = torch.compile(products, dynamic=False, fullgraph=True, backend=backend)

    def gradient(self, weights: Weights, step: Step) -> Weights | None:
        """∇ℓ of J networks, each on images of its own."""
        found = self._each(self._gradient, step, weights)
        if found is None:
            return None
        return {name: torch.stack([one[name] for one in found]) for name in weights}

    def products(self, g: Gradient, u: list[Tensor]) -> Products | None:
        """The products of the same with u."""
        along = dict(zip(g.weights, u, strict=True))
        found = self._each(self._products, g.step, g.weights, along)
        if found is None:
            return None
        values, back, inputs, labels = zip(*found, strict=True)
        g_values, of_weights = (
            [torch.stack([one[name] for one in own]) for name in along] for own in (values, back)
        )
        return Products(g_values, of_weights, torch.stack(inputs), torch.stack(labels))

    def _each(self, function: Callable[..., Any], step: Step, *given: Weights) -> list[Any] | None:
        """What a function gives for each network, if it can be compiled."""
        if self.failed:
            return None
        found: list[Any] = []
        try:
            with torch.no_grad(), twice_differentiable(recurrent=self._network.recurrent):
                for j, (inputs, labels) in enumerate(zip(step.inputs, step.labels, strict=True)):
                    weights, *more = ({name: w[j] for name, w in own.items()} for own in given)
                    found.append(function(weights, inputs, labels, *more))
        except Exception as error:  # there are as many as there are compilers and modules
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            tell_not_compiled("Updates", reason)
            self.failed = True
            return None
        return found


@dataclass(frozen=True)
class CompiledUpdate(Update):
    """An update by compiled functions; where they fail, as it is without.

    Attributes:
        functions: The compiled functions.
    """

    functions: Functions = field(kw_only=True)

    def __call__(self, learner: Learner, step: Step) -> Learner:
        if torch.is_grad_enabled() or not step.learning_rate.ndim:
            return super().__call__(learner, step)
        found = self.functions.gradient(learner.weights, step)
        if found is None:
            return super().__call__(learner, step)
        return self.rule.moved(learner, step, found)

    def record(self, learner: Learner, step: Step) -> Gradient:
        """Only where it stands: the compiled products begin anew."""
        if self.functions.failed or not step.learning_rate.ndim:
            return super().record(learner, step)
        return Gradient(learner, learner.weights, step, [])

    def pull_back(self, g: Gradient, v: list[Tensor]) -> tuple[list[Tensor], Step]:
        if g.values:
            return super().pull_back(g, v)
        return self.rule.pull_back(g, v, self._products)

    def _products(self, g: Gradient, u: list[Tensor]) -> Products:
        found = self.functions.products(g, u)
        return found or through_graph(super().record(g.learner, g.step), u)
