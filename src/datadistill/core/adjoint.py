"""Adjoints: how the gradient of the outer loss travels back through the updates."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from ..errors import ConfigError
from .distilled import Position, Step, Steps
from .network import Weights
from .update import Gradient, Learner, Update, gradients, leaf

OuterLoss = Callable[[Weights], Tensor]
"""θ_T → the losses (J,) of J networks on real data."""

KEPT_BYTES = 384 * 2**20
"""What the weights kept in a forward sweep may take before it is divided into segments."""

ALIGNMENT = 64
"""Bytes; torch's tensors begin at multiples of it."""


class Adjoint(Protocol):
    """A way to differentiate the outer loss with respect to all steps."""

    def __call__(
        self,
        update: Update,
        learner: Learner,
        steps: Steps,
        outer_loss: OuterLoss,
        generator: torch.Generator,
    ) -> tuple[Tensor, Steps]:
        """Returns the losses (J,) and the gradient of their mean, in the shape of ``steps``.

        Labels that are class indices have no gradient; it is returned as zeros.
        """
        ...


@dataclass(frozen=True)
class BackGradient:
    """Exact, in the memory of one update's graph and of the weights that are kept.

    Forward, only weights are kept; backward, the graph of one update at a time is built again
    and v = ∂L/∂θ_{t+1} pulled back through it. A long unroll is divided into segments: only
    the weights at the beginning of each are kept, and its updates are made again when v comes
    to it. The gradient is the same to the last bit.

    Attributes:
        segments: Into how many; by default as few as keep the weights within 384 MiB, and at
            most √T.
    """

    segments: int | None = field(default=None, repr=False)  # changes no result

    def __post_init__(self) -> None:
        if self.segments is not None and self.segments < 1:
            raise ConfigError(
                f"The back-gradient adjoint got {self.segments} segments.",
                "Choose at least 1, or leave segments out.",
            )

    def __call__(
        self,
        update: Update,
        learner: Learner,
        steps: Steps,
        outer_loss: OuterLoss,
        generator: torch.Generator,
    ) -> tuple[Tensor, Steps]:
        schedule = steps.schedule
        return _sweep(update, learner, steps, outer_loss, schedule, len(schedule), self.segments)


@dataclass(frozen=True)
class Truncated:
    """Back-propagates through a window of the updates only; the rest get no gradient.

    Attributes:
        window: How many updates are differentiated.
        random: Whether the unroll stops at a random update, so that the window falls
            anywhere in the schedule, or the window is always the last updates.
    """

    window: int
    random: bool = True

    def __post_init__(self) -> None:
        if self.window < 1:
            raise ConfigError(
                f"The truncated adjoint got a window of {self.window} updates.",
                "Choose a window of at least 1.",
            )

    def __call__(
        self,
        update: Update,
        learner: Learner,
        steps: Steps,
        outer_loss: OuterLoss,
        generator: torch.Generator,
    ) -> tuple[Tensor, Steps]:
        schedule = steps.schedule
        window = min(self.window, len(schedule))
        end = len(schedule)
        if self.random:
            end = int(torch.randint(window, end + 1, (), generator=generator))
        return _sweep(update, learner, steps, outer_loss, schedule[:end], window)


@dataclass(frozen=True)
class StoredGraph:
    """Exact, and keeps the graphs of all T updates: faster where memory allows."""

    def __call__(
        self,
        update: Update,
        learner: Learner,
        steps: Steps,
        outer_loss: OuterLoss,
        generator: torch.Generator,
    ) -> tuple[Tensor, Steps]:
        steps = Steps(leaf(steps.inputs), leaf(steps.labels), leaf(steps.learning_rates))
        with torch.enable_grad():
            for step in steps:
                learner = update(learner, step)
            losses = outer_loss(learner.weights)
            leaves = [steps.inputs, steps.labels, steps.learning_rates]
            return losses.detach(), Steps(*gradients([losses.mean()], leaves))


def _sweep(
    update: Update,
    learner: Learner,
    steps: Steps,
    outer_loss: OuterLoss,
    schedule: list[Position],
    window: int,
    segments: int | None = None,
) -> tuple[Tensor, Steps]:
    """Makes the updates of ``schedule`` and pulls back through the last ``window`` of them."""
    before, inside = schedule[: len(schedule) - window], schedule[len(schedule) - window :]
    learner = _make(update, learner, [steps[position] for position in before])
    graphs = 1 if segments else update.graphs(learner, steps[inside[0]], window)
    parts = _divide(inside, segments or segments_of(window, learner, graphs))
    trails = [_Trail(update, [steps[position] for position in part], graphs) for part in parts]
    starts = _Kept(learner, len(parts) - 1)

    for n, trail in enumerate(trails[:-1]):  # θ_{t+1} = θ_t − η̃_t ∇ℓ(x̃_t, θ_t)
        starts.keep(n, learner)
        learner = _make(update, learner, trail.steps)
    learner = trails[-1].make(learner)

    losses, v = _outer_gradient(outer_loss, learner)  # v = ∂L/∂θ_T
    del learner
    total = Steps(
        torch.zeros_like(steps.inputs),
        torch.zeros_like(steps.labels),
        torch.zeros_like(steps.learning_rates),
    )
    for n, part in reversed(list(enumerate(parts))):
        trail = trails.pop()
        if n < len(starts):
            trail.make(starts[n])
        for position in reversed(part):
            v, gradient = update.pull_back(trail.last(), v)
            total.inputs[position.step] += gradient.inputs
            total.labels[position.step] += gradient.labels
            total.learning_rates[position.epoch, position.step] += gradient.learning_rate
    return losses, total


def _make(update: Update, learner: Learner, steps: list[Step]) -> Learner:
    """Makes updates and keeps nothing of them."""
    with torch.no_grad():
        for step in steps:
            learner = update(learner, step)
    return learner


class _Trail:
    """What is kept of some updates for the way back: every so many of them, θ_t.

    From there the gradients of as many updates are recorded when v comes to them. Those of the
    last are recorded on the way forward, if there is room for more than one.

    Attributes:
        steps: What the updates are made on.
    """

    def __init__(self, update: Update, steps: list[Step], graphs: int) -> None:
        self._update, self.steps, self._graphs = update, steps, graphs
        self._recorded = list[Gradient]()

    def make(self, learner: Learner) -> Learner:
        """Makes all updates."""
        k, updates = self._graphs, len(self.steps)
        once = (updates - 1) // k * k if k > 1 else updates  # from here on they are recorded
        self._kept = _Kept(learner, once // k)
        for n in range(once // k):
            self._kept.keep(n, learner)
            learner = _make(self._update, learner, self.steps[n * k : n * k + k])
        self._left = once // k
        self._record(learner, self.steps[once:])
        return self._update.after(self._recorded[-1]) if self._recorded else learner

    def last(self) -> Gradient:
        """The gradient of the last update that is left, to be pulled back through."""
        if not self._recorded:
            self._left -= 1
            begin = self._left * self._graphs
            self._record(self._kept[self._left], self.steps[begin : begin + self._graphs])
        return self._recorded.pop()

    def _record(self, learner: Learner, steps: list[Step]) -> None:
        for n, step in enumerate(steps):
            if n:
                learner = self._update.after(self._recorded[-1])
            self._recorded.append(self._update.record(learner, step))


class _Kept:
    """Learners along the way, in one block: many small ones fragment the memory.

    Tensors begin where torch would let them begin, at multiples of 64 bytes: the last bit of a
    product may depend on where in memory its factors begin.
    """

    def __init__(self, learner: Learner, length: int) -> None:
        self._like = learner
        self._lengths = [math.ceil(own.nbytes / ALIGNMENT) * ALIGNMENT for own in learner.leaves()]
        first = learner.leaves()[0]
        self._block = first.new_empty(length, sum(self._lengths), dtype=torch.uint8)

    def __len__(self) -> int:
        return len(self._block)

    def keep(self, t: int, learner: Learner) -> Learner:
        """Copies a learner to its place, and returns it as it is there."""
        kept = self[t]
        for place, own in zip(kept.leaves(), learner.leaves(), strict=True):
            place.copy_(own)
        return kept

    def __getitem__(self, t: int) -> Learner:
        return self._like.rebuild(self._places(t))

    def _places(self, t: int) -> list[Tensor]:
        """The tensors of learner t, in the block."""
        both = zip(self._block[t].split(self._lengths), self._like.leaves(), strict=True)
        return [row[: own.nbytes].view(own.dtype).view_as(own) for row, own in both]


def segments_of(updates: int, learner: Learner, graphs: int = 1) -> int:
    """The fewest segments whose kept weights fit the bound; about √T keep the least."""
    each = sum(leaf.numel() * leaf.element_size() for leaf in learner.leaves())
    kept = math.ceil(updates / graphs)  # of one segment
    most = math.isqrt(kept - 1) + 1
    fitting = (n for n in range(1, most) if (n + math.ceil(kept / n)) * each <= KEPT_BYTES)
    return next(fitting, most)


def _divide(positions: list[Position], segments: int) -> list[list[Position]]:
    """Runs of equal length; the last may be shorter."""
    length = math.ceil(len(positions) / segments)
    return [positions[begin : begin + length] for begin in range(0, len(positions), length)]


def _outer_gradient(outer_loss: OuterLoss, learner: Learner) -> tuple[Tensor, list[Tensor]]:
    leaves = [leaf(own) for own in learner.leaves()]
    with torch.enable_grad():
        losses = outer_loss(learner.rebuild(leaves).weights)
        return losses.detach(), gradients([losses.mean()], leaves)
