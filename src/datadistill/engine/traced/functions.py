"""An update's gradient and its products as two functions without autograd.

The graph of ∇ℓ and of its products is traced once for the shapes of an unroll, simplified, and cut
in two: what gives ∇ℓ, and what gives the products from u and from what the first half has kept. So
an update is straight-line code. Autograd would build the same graph again in every update.
"""

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from ...core.attention import twice_differentiable
from ...core.distilled import Step
from ...core.engine import Products, Recorded
from ...core.gradients import gradient, leaf, leaves, products
from ...core.learner import Learner
from ...core.network import Loss, Network, Weights
from ...core.objective import Objective
from ...core.random import stream
from ..box import boxes, unbox
from ..choice import may_use_kernels
from ..stacked import Stacked
from .cut import Halves, cut, kept_bytes
from .layers import FastLayers
from .simplify import simplify

FEWEST_UPDATES = 8
"""Of a shorter unroll the graph is not traced."""
UPDATES_BEFORE = 1000
"""Nor before so many updates of networks, which take about as long as it takes to trace one. So a
run of a few outer steps is not kept waiting, and a long one loses little."""
MOST_NODES = 10_000
"""Nor is a longer graph used."""

Losses = Callable[[Weights, Tensor, Tensor], Tensor]
"""(θ, inputs, labels) → ℓ of each network, on a step of its own."""


@dataclass(frozen=True)
class TracedFunctions:
    """∇ℓ and its products with some u, for weights and steps of one shape.

    Attributes:
        names: The names of the weights.
        halves: The code.
        bytes: What is kept between the halves, besides weights and steps.
    """

    names: Sequence[str]
    halves: Halves
    bytes: int = 0

    def graph_bytes(self, learner: Learner, step: Step) -> int:  # noqa: ARG002 - of this shape
        """What a recorded gradient keeps beside the learner and the step."""
        return self.bytes

    def gradient(self, weights: Weights, step: Step) -> Weights:
        """∇ℓ."""
        return self.record(weights, step).values

    def record(self, weights: Weights, step: Step) -> "TracedGradient":
        """∇ℓ, and what its products need."""
        given = (*(weights[name] for name in self.names), step.inputs, step.labels)
        with torch.no_grad():
            values, kept = self.halves.forward(*given)
        return TracedGradient(self, dict(zip(self.names, values, strict=True)), kept)


class TracedGradient:
    """A gradient that traced functions have computed.

    Args:
        functions: The functions.
        values: ∇ℓ.
        kept: What its products need.

    Attributes:
        kept: The same, until they have been computed.
    """

    def __init__(self, functions: TracedFunctions, values: Weights, kept: list[Tensor]) -> None:
        self._functions, self._values, self.kept = functions, values, kept

    @property
    def values(self) -> Weights:
        """∇ℓ."""
        return self._values

    def products(self, u: Weights) -> Products:
        """The products of ∇ℓ with u. What was kept is gone afterwards."""
        names, kept = self._functions.names, self.kept
        self.kept = []
        with torch.no_grad():
            found = self._functions.halves.backward(*kept, *(u[name] for name in names))
        *weights, inputs, labels = found
        return Products(self._values, dict(zip(names, weights, strict=True)), inputs, labels)


_known: WeakKeyDictionary[Network, list[tuple[Objective, Any, TracedFunctions | None]]] = (
    WeakKeyDictionary()
)
"""What has been traced of a network."""


def is_traced(network: Network) -> bool:
    """Whether updates of a network have been traced."""
    return any(found is not None for *_, found in _known.get(network, ()))


def worth_tracing(unroll: int, before: int = UPDATES_BEFORE) -> bool:
    """Whether to trace the updates of an unroll, after those of earlier outer steps."""
    return unroll >= FEWEST_UPDATES and before >= UPDATES_BEFORE


def traced(
    network: Network, fast: Stacked | None, objective: Objective, weights: Weights, step: Step
) -> TracedFunctions | None:
    """The functions for networks and steps of one shape; None if they cannot be traced.

    Args:
        network: The architecture.
        fast: The same layer by layer, if its layers are known.
        objective: What has the inner loss.
        weights: The weights of as many networks as are computed side by side.
        step: A step of each.
    """
    if not step.learning_rate.ndim or network.device.type != "cpu":
        return None
    like = (step.inputs.shape, step.labels.shape, step.labels.dtype, may_use_kernels())
    known = _known.setdefault(network, [])
    for own, shapes, found in known:
        if own is objective and shapes == like:
            return found
    alone = fast is None and len(step.inputs) == 1
    several = fast.own_losses if fast else network.own_losses
    own_losses = partial(_one_network, network) if alone else several

    def losses(weights: Weights, inputs: Tensor, labels: Tensor) -> Tensor:
        return own_losses(weights, inputs, labels, objective.inner_loss)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = trace(losses, weights, step, fast_layers=alone or fast is not None)
        except Exception:  # there are as many as there are modules
            found = None
    known.append((objective, like, found))
    return found


def _one_network(
    network: Network, weights: Weights, inputs: Tensor, labels: Tensor, loss: Loss
) -> Tensor:
    """ℓ of a single network, which nothing is stacked for."""
    alone = {name: w.squeeze(0) for name, w in weights.items()}
    with twice_differentiable(recurrent=network.recurrent), _step_by_step(network):
        outputs = network.bare({**network.constants, **alone}, inputs.squeeze(0))
    return loss(outputs, labels.squeeze(0)).unsqueeze(0)


def _step_by_step(network: Network) -> AbstractContextManager[object]:
    """Recurrent layers as a loop over time: oneDNN's cannot be traced."""
    return torch.backends.mkldnn.flags(enabled=False) if network.recurrent else nullcontext()


def trace(
    losses: Losses, weights: Weights, step: Step, *, fast_layers: bool = True
) -> TracedFunctions | None:
    """Traces ∇ℓ and its products; None if the graph is too long or gives something else.

    Args:
        losses: ℓ.
        weights: Weights of the shapes that are wanted.
        step: Likewise a step.
        fast_layers: Whether layers may be replaced by faster ones, which vmap cannot have.
    """
    names = [*weights]
    count = len(names)

    def differentiated(theta: Weights, step: Step) -> Weights:
        return gradient(lambda own: losses(own, step.inputs, step.labels).sum(), theta)

    def joint(*given: Tensor) -> tuple[Tensor, ...]:
        theta = leaves(dict(zip(names, given, strict=False)))
        own = step._replace(inputs=leaf(given[count]), labels=leaf(given[count + 1]))
        with torch.enable_grad():
            g = [*differentiated(theta, own).values()]
            found = products(g, [*theta.values(), own.inputs, own.labels], given[count + 2 :])
        return (*(one.detach() for one in g), *found)

    theta = {name: w + 0.1 * _noise(name, w) for name, w in weights.items()}
    u = {name: _noise(f"u of {name}", w) for name, w in weights.items()}
    with boxes() as table, FastLayers() if fast_layers else nullcontext():
        module = make_fx(joint)(*theta.values(), step.inputs, step.labels, *u.values())
        if len(module.graph.nodes) > MOST_NODES:
            return None
    simplify(module.graph)
    unbox(module.graph, table)
    found = TracedFunctions(names, cut(module.graph, module, given=count + 2, first=count))
    made = found.record(theta, step)
    size = kept_bytes(made.kept, (*theta.values(), step.inputs, step.labels))
    same = same_products(made.products(u), Recorded(differentiated, theta, step).products(u))
    return TracedFunctions(names, found.halves, size) if same else None


def same_products(found: Products, expected: Products) -> bool:
    """Whether two ways to compute products differ by no more than rounding may grow to."""
    trees = [
        ({**one.weights, "": one.inputs, " ": one.labels} for one in (found, expected)),
        (one.values for one in (found, expected)),
    ]
    return all(_close(*pair) for pair in trees)


def _close(found: Weights, expected: Weights) -> bool:
    """The same of two trees: of some tensors there is nothing but rounding."""
    if any(found[name].shape != one.shape for name, one in expected.items()):
        return False
    wide = {name: one.double() for name, one in expected.items()}
    length = torch.stack([one.norm() for one in wide.values()]).norm()
    away = torch.stack([(found[name] - one).norm() for name, one in wide.items()]).norm()
    eps = torch.finfo(next(iter(expected.values())).dtype).eps
    return bool(away <= (1e-10 if eps < 1e-10 else eps**0.4) * length)


def _noise(name: str, like: Tensor) -> Tensor:
    return torch.randn(like.shape, generator=stream(0, f"trial of {name}")).to(like)
