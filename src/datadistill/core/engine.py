"""Engines: what computes losses, gradients and their products for J networks.

The plain engine is the specification: short, and as the equations say it. ``datadistill.engine``
holds a fast one with the same interface, which gives the same numbers up to rounding.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from .distilled import Step, Steps
from .gradients import gradient, leaf, leaves, products
from .learner import Learner
from .network import Network, Weights
from .objective.objective import Objective

Tree = dict[str, Tensor]
Found = tuple[Tensor, Tree]
"""The losses (J,) of some networks, and the gradient of their mean."""
Sample = Callable[[range], Weights]
"""Draws the initial weights of networks with some numbers."""
Learn = Callable[["Engine", Weights, range], tuple[Tensor, Steps]]
"""The losses (J,) of some networks, from their initial weights and numbers, and the gradient of
their mean with respect to the steps of each."""
Combine = Callable[[Steps], Tree]
"""The gradient of what is learned, from that of the steps of each network."""


class Products(NamedTuple):
    """What a pull-back needs of g = ∇ℓ(x̃, θ) and some u.

    Attributes:
        values: g, without its graph.
        weights: ∂⟨u, g⟩/∂θ.
        inputs: ∂⟨u, g⟩/∂x̃.
        labels: The same of the labels; zeros if they have no gradient.
    """

    values: Weights
    weights: Weights
    inputs: Tensor
    labels: Tensor


class Gradient(Protocol):
    """g = ∇ℓ(x̃_t, θ_t), recorded so that it can be pulled back through."""

    @property
    def values(self) -> Weights:
        """g, without its graph."""
        ...

    def products(self, u: Weights) -> Products:
        """The products of g with u. The graph is gone afterwards."""
        ...


class Tape(Protocol):
    """Some updates of a learner: made forwards, then gone through backwards, once each."""

    def forward(self) -> Learner:
        """Makes all updates; returns the learner after the last."""
        ...

    def backward(self) -> Iterator[tuple[Learner, Gradient]]:
        """The learner before each update and the gradient it was made with, the last first."""
        ...


class UpdateFunction(Protocol):
    """What an engine needs of an update rule."""

    def update(self, learner: Learner, gradient: Weights, step: Step) -> Learner:
        """The learner after an update along a gradient."""
        ...


class Engine(Protocol):
    """Computes losses, gradients and their products for J networks."""

    @property
    def network(self) -> Network:
        """The architecture."""
        ...

    @property
    def objective(self) -> Objective:
        """What is descended on distilled data, and measured on real data."""
        ...

    @property
    def divisible(self) -> bool:
        """Whether networks can be divided among processes."""
        ...

    @property
    def compilable(self) -> bool:
        """Whether compiled updates may be faster."""
        ...

    @property
    def compiled(self) -> bool:
        """Whether updates are compiled."""
        ...

    def losses(self, weights: Weights, step: Step) -> Tensor:
        """ℓ(x̃, θ_j) of J networks, (J,): on one step for all, or on a step of its own each."""
        ...

    def gradient(self, weights: Weights, step: Step) -> Weights:
        """G = ∇ℓ(x̃, θ); differentiable again if gradients are enabled."""
        ...

    def record(self, weights: Weights, step: Step) -> Gradient:
        """The same, recorded."""
        ...

    def tape(
        self, rule: UpdateFunction, learner: Learner, steps: Sequence[Step], segments: int | None
    ) -> Tape:
        """A tape of one update on each step.

        Args:
            rule: The update rule.
            learner: The learner before the first update.
            steps: The steps, in order.
            segments: Into how many parts the updates are divided to save memory.
        """
        ...

    def outer_losses(self, weights: Weights, inputs: Tensor, labels: Tensor) -> Tensor:
        """The losses (J,) on real data; once differentiable."""
        ...

    def mean_over(
        self, numbers: range, taped: int, sample: Sample, learn: Learn, combine: Combine
    ) -> Found:
        """The losses of networks with these numbers, and the gradient of their mean.

        Args:
            numbers: The numbers of J networks; those of earlier outer steps come before them.
            taped: How many updates of each network are made on a tape.
            sample: Draws the initial weights of some of them.
            learn: Computes some of them.
            combine: Goes back from their steps to what is learned, for as many at once as there
                are in this process.
        """
        ...


@dataclass(frozen=True, eq=False)
class PlainEngine:
    """Everything at once, in one thread of Python, by autograd.

    Attributes:
        network: The architecture.
        objective: What is descended and measured.
    """

    network: Network
    objective: Objective

    divisible = compilable = compiled = False

    def losses(self, weights: Weights, step: Step) -> Tensor:
        """ℓ(x̃, θ_j) of J networks, (J,): on one step for all, or on a step of its own each."""
        network = self.network
        losses = network.own_losses if step.learning_rate.ndim else network.losses
        return losses(weights, step.inputs, step.labels, self.objective.inner_loss)

    def gradient(self, weights: Weights, step: Step) -> Weights:
        return gradient(lambda theta: self.losses(theta, step).sum(), weights)

    def record(self, weights: Weights, step: Step) -> Gradient:
        return Recorded(self.gradient, weights, step)

    def tape(
        self, rule: UpdateFunction, learner: Learner, steps: Sequence[Step], segments: int | None
    ) -> Tape:
        return PlainTape(self, rule, learner, steps)

    def outer_losses(self, weights: Weights, inputs: Tensor, labels: Tensor) -> Tensor:
        return self.network.losses(weights, inputs, labels, self.objective.outer_loss)

    def mean_over(
        self, numbers: range, taped: int, sample: Sample, learn: Learn, combine: Combine
    ) -> Found:
        losses, gradient = learn(self, sample(numbers), numbers)
        return losses, combine(gradient)


class Recorded:
    """A gradient with its graph.

    Args:
        function: (θ, step) → ∇ℓ, differentiable.
        weights: θ.
        step: x̃, its labels and its learning rate.
    """

    def __init__(
        self, function: Callable[[Weights, Step], Weights], weights: Weights, step: Step
    ) -> None:
        self._weights = leaves(weights)
        self._step = step._replace(inputs=leaf(step.inputs), labels=leaf(step.labels))
        with torch.enable_grad():
            self._g = function(self._weights, self._step)

    @property
    def values(self) -> Weights:
        """g, without its graph."""
        return {name: one.detach() for name, one in self._g.items()}

    def products(self, u: Weights) -> Products:
        """The products of g with u, by its graph, which is gone afterwards."""
        of = [*self._weights.values(), self._step.inputs, self._step.labels]
        *back, inputs, labels = products([*self._g.values()], of, [u[name] for name in self._g])
        return Products(self.values, dict(zip(self._weights, back, strict=True)), inputs, labels)


class PlainTape:
    """Keeps every θ_t on the way forward, and records one gradient at a time on the way back."""

    def __init__(
        self, engine: PlainEngine, rule: UpdateFunction, learner: Learner, steps: Sequence[Step]
    ) -> None:
        self._engine, self._rule, self._steps = engine, rule, steps
        self._learners = [learner]

    @torch.no_grad()
    def forward(self) -> Learner:
        """Makes all updates."""
        for step in self._steps:
            learner = self._learners[-1]
            g = self._engine.gradient(learner.weights, step)
            self._learners.append(self._rule.update(learner, g, step))
        return self._learners.pop()

    def backward(self) -> Iterator[tuple[Learner, Gradient]]:
        """Goes back through them."""
        for step in reversed(self._steps):
            learner = self._learners.pop()
            yield learner, self._engine.record(learner.weights, step)
