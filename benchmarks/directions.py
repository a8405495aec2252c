"""Forward over reverse against reverse over reverse: one pull-back through an update.

With g = ∇ℓ(x̃, θ) and some u, a pull-back needs ∂⟨u, g⟩/∂θ and ∂⟨u, g⟩/∂x̃. Reverse over reverse
differentiates ⟨u, g⟩. Forward over reverse differentiates both gradients of ℓ along u: the same, as
second derivatives commute. Both by ``torch.func``, for one network and 10 images; beside them the
engine's own, which is reverse over reverse. ``python -m benchmarks --only directions``
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.func import functional_call, grad, jvp, vjp

from benchmarks.compiled import CASES, Case
from benchmarks.speed import prepare
from benchmarks.timing import alternately
from datadistill.core.distilled import Position
from datadistill.core.learner import Learner
from datadistill.core.network import Weights
from datadistill.core.random import stream
from datadistill.models import AlexCifarNet
from datadistill.runs.distillation import Distillation

REPEATS = 20
WIDE = "AlexCifarNet"


class Products(NamedTuple):
    """∂⟨u, g⟩/∂θ and ∂⟨u, g⟩/∂x̃."""

    weights: Weights
    inputs: Tensor


def ways(distillation: Distillation) -> dict[str, Callable[[], Products]]:
    """The ways to have the products of the first step, for a random v = −u / η̃."""
    distiller, state = distillation.distiller, distillation.start().distiller
    network, engine, rule = distiller.network, distiller.engine, distiller.rule
    module = network.module()
    weights = {name: p.detach() for name, p in module.named_parameters()}
    step = distillation.images(state).for_each(1)[Position(0, 0)]
    x, labels, eta = step.inputs[0], step.labels[0], step.learning_rate[0]
    random = stream(0, "direction")
    v = {n: torch.randn(w.shape, generator=random, dtype=w.dtype) for n, w in weights.items()}
    u = {name: -eta * one for name, one in v.items()}
    learner = rule.start(network.stack([weights]))
    pulled_back = Learner(network.stack([v]))

    def loss(weights: Weights, x: Tensor) -> Tensor:
        return distiller.objective.inner_loss(functional_call(module, weights, (x,)), labels)

    def reverse() -> Products:
        pulled: Any = vjp
        _, back = pulled(grad(loss), weights, x)
        return Products(*back(u))

    def both(weights: Weights) -> tuple[Weights, Tensor]:
        return grad(loss, argnums=(0, 1))(weights, x)

    def forward() -> Products:
        pushed: Any = jvp
        _, along = pushed(both, (weights,), (u,))
        return Products(*along)

    def ours() -> Products:
        g = engine.record(learner.weights, step)
        moved, of_step = rule.pull_back(learner, g, step, pulled_back)
        back = {name: one[0] - v[name] for name, one in moved.weights.items()}
        return Products(back, of_step.inputs[0])

    return {"reverse over reverse": reverse, "forward over reverse": forward, "ours": ours}


def measure(*, quick: bool = False) -> dict[str, Any]:
    """Milliseconds of each way, for networks of ours and of a user's own."""
    cases = {**CASES, WIDE: Case(AlexCifarNet, (3, 32, 32), (1,), 1)}
    return {"rows": [_row(name, case, 3 if quick else 8) for name, case in cases.items()]}


def _row(name: str, case: Case, trials: int) -> dict[str, Any]:
    repeats = 1 if name == WIDE else REPEATS

    def repeated(way: Callable[[], Products]) -> Callable[[], object]:
        return lambda: [way() for _ in range(repeats)]

    sides = ways(prepare(case.make(), case.shape, 1, steps=1, epochs=1))
    best = alternately({way: repeated(side) for way, side in sides.items()}, trials)
    times = {f"{way}, ms": 1e3 * seconds / repeats for way, seconds in best.items()}
    return {"network": name, **times}


def differ(found: Sequence[Products]) -> float:
    """The largest relative difference from the first of several products."""

    def one(products: Products) -> Tensor:
        parts = [*products.weights.values(), products.inputs]
        return torch.cat([part.flatten() for part in parts])

    first, *others = (one(products) for products in found)
    return max(float((other - first).norm() / first.norm()) for other in others)
