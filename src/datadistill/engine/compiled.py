"""Updates by compiled functions, for networks whose layers the engine does not know.

Where a network is many small operations, most of an update's time goes into calling them one by
one. ``torch.compile`` makes few of many. It takes about a minute, so only long runs gain by it.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.func import grad, vjp

from ..core.attention import twice_differentiable
from ..core.distilled import Step
from ..core.engine import Products, Recorded
from ..core.network import Loss, Network, Weights
from ..notices import warn_once
from .cache import use_own_inductor_folder


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
        use_own_inductor_folder()

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

    def products(self, weights: Weights, step: Step, u: Weights) -> Products | None:
        """The products of the same with u."""
        found = self._each(self._products, step, weights, u)
        if found is None:
            return None
        values, back, inputs, labels = zip(*found, strict=True)
        g, of_weights = (
            {name: torch.stack([one[name] for one in own]) for name in weights}
            for own in (values, back)
        )
        return Products(g, of_weights, torch.stack(inputs), torch.stack(labels))

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
            warn_once(
                f"Updates could not be compiled ({reason}), which takes longer and changes the "
                "last bits of results. To do without: --no-compiled."
            )
            self.failed = True
            return None
        return found


class CompiledGradient:
    """A gradient by compiled functions, which begin anew; where they fail, by its graph.

    Args:
        functions: The compiled functions.
        function: (θ, step) → ∇ℓ, differentiable.
        weights: θ.
        step: What ℓ is of.
    """

    def __init__(
        self,
        functions: Functions,
        function: Callable[[Weights, Step], Weights],
        weights: Weights,
        step: Step,
    ) -> None:
        self._functions, self._function = functions, function
        self._weights, self._step = weights, step

    @property
    def values(self) -> Weights:
        """g, without its graph."""
        return self._values

    @cached_property
    def _values(self) -> Weights:
        found = self._functions.gradient(self._weights, self._step)
        return self._recorded().values if found is None else found

    def products(self, u: Weights) -> Products:
        """The products of g with u."""
        found = self._functions.products(self._weights, self._step, u)
        return self._recorded().products(u) if found is None else found

    def _recorded(self) -> Recorded:
        return Recorded(self._function, self._weights, self._step)
