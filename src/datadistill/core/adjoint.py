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
    with torch.no_grad():
        for position in before:
            learner = update(learner, steps[position])
    graphs = not segments and update.fits(learner, steps[inside[0]], window)
    parts = _divide(inside, 1 if graphs else segments or segments_of(window, learner))
    trail = _Graphs(update) if graphs else _Weights(update, learner, len(parts[0]))
    starts = _Kept(learner, len(parts) - 1)

    def forward(learner: Learner, positions: list[Position]) -> Learner:
        for t, position in enumerate(positions):
            learner = trail.make(t, learner, steps[position])  # θ_{t+1} = θ_t − η̃_t ∇ℓ(x̃_t, θ_t)
        return learner

    for n, part in enumerate(parts):
        if part is not parts[-1]:  # whose weights will be there still
            starts.keep(n, learner)
        learner = forward(learner, part)

    losses, v = _outer_gradient(outer_loss, learner)  # v = ∂L/∂θ_T
    del learner
    total = Steps(
        torch.zeros_like(steps.inputs),
        torch.zeros_like(steps.labels),
        torch.zeros_like(steps.learning_rates),
    )
    for n, part in reversed(list(enumerate(parts))):
        if part is not parts[-1]:
            forward(starts[n], part)
        for t, position in reversed(list(enumerate(part))):
            v, gradient = update.pull_back(trail.recorded(t, steps[position]), v)
            total.inputs[position.step] += gradient.inputs
            total.labels[position.step] += gradient.labels
            total.learning_rates[position.epoch, position.step] += gradient.learning_rate
    return losses, total


class _Trail(Protocol):
    """What a forward sweep keeps of each update for the way back."""

    def make(self, t: int, learner: Learner, step: Step) -> Learner:
        """Makes update t."""
        ...

    def recorded(self, t: int, step: Step) -> Gradient:
        """The gradient of update t, to be pulled back through once; the last one first."""
        ...


class _Weights(_Trail):
    """Keeps θ_t, and builds the graph of an update again."""

    def __init__(self, update: Update, learner: Learner, length: int) -> None:
        self._update, self._kept = update, _Kept(learner, length)

    def make(self, t: int, learner: Learner, step: Step) -> Learner:
        self._kept.keep(t, learner)
        with torch.no_grad():
            return self._update(learner, step)

    def recorded(self, t: int, step: Step) -> Gradient:
        return self._update.record(self._kept[t], step)


class _Graphs(_Trail):
    """Keeps the graphs: each update's gradient is computed once, not twice."""

    def __init__(self, update: Update) -> None:
        self._update, self._graphs = update, list[Gradient]()

    def make(self, t: int, learner: Learner, step: Step) -> Learner:
        made = self._update.record(learner, step)
        self._graphs.append(made)
        return self._update.after(made)

    def recorded(self, t: int, step: Step) -> Gradient:
        return self._graphs.pop()


class _Kept:
    """Learners along the way, in one block: many small ones fragment the memory."""

    def __init__(self, learner: Learner, length: int) -> None:
        self._like = learner
        self._bytes = [leaf.nbytes for leaf in learner.leaves()]
        first = learner.leaves()[0]
        self._block = first.new_empty(length, sum(self._bytes), dtype=torch.uint8)

    def keep(self, t: int, learner: Learner) -> None:
        for place, own in zip(self._block[t].split(self._bytes), learner.leaves(), strict=True):
            place.copy_(own.flatten().view(torch.uint8))

    def __getitem__(self, t: int) -> Learner:
        # Copies: the last bit of a product may depend on where in memory its factors begin.
        places = zip(self._block[t].split(self._bytes), self._like.leaves(), strict=True)
        return self._like.rebuild([p.clone().view(own.dtype).view_as(own) for p, own in places])


def segments_of(updates: int, learner: Learner) -> int:
    """The fewest segments whose kept weights fit the bound; √T keep the least."""
    each = sum(leaf.numel() * leaf.element_size() for leaf in learner.leaves())
    most = math.isqrt(updates - 1) + 1
    fitting = (n for n in range(1, most) if (n + math.ceil(updates / n)) * each <= KEPT_BYTES)
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
