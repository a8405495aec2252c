"""A tape in bounded memory: few weights and graphs are kept, the rest is computed again."""

import math
from collections.abc import Iterator, Sequence
from typing import Protocol

import torch
from torch import Tensor

from ..core.distilled import Step
from ..core.engine import Gradient, UpdateFunction
from ..core.learner import Learner
from ..core.network import Weights
from ..core.update import updated

KEPT_BYTES = 384 * 2**20
"""What the weights kept in a forward sweep may take before it is divided into segments."""

ALIGNMENT = 64
"""Bytes; torch's tensors begin at multiples of it."""


class Recorder(Protocol):
    """What a tape needs of an engine."""

    def gradient(self, weights: Weights, step: Step) -> Weights:
        """∇ℓ(x̃, θ)."""
        ...

    def record(self, weights: Weights, step: Step) -> Gradient:
        """The same, recorded."""
        ...


class SegmentedTape:
    """Updates in segments, of which only the last keeps what the way back needs.

    Of the others only the learner at their beginning is kept; their updates are made again when
    the way back comes to them. The gradient is bit-identical.

    Args:
        engine: What computes.
        rule: The update rule.
        learner: The learner before the first update.
        steps: The steps, in order.
        graphs: Of how many updates recorded gradients are kept at a time.
        segments: How many; by default as few as keep the weights within :data:`KEPT_BYTES`.
    """

    def __init__(
        self,
        engine: Recorder,
        rule: UpdateFunction,
        learner: Learner,
        steps: Sequence[Step],
        *,
        graphs: int = 1,
        segments: int | None = None,
    ) -> None:
        parts = divided(steps, segments or segments_of(len(steps), learner, graphs))
        self._segments = [_Segment(engine, rule, part, graphs) for part in parts]
        self._starts = WeightStore(learner, len(parts) - 1)
        self._first: list[Learner] = [learner]

    def forward(self) -> Learner:
        """Makes all updates."""
        learner = self._first.pop()
        for n, segment in enumerate(self._segments[:-1]):
            self._starts.keep(n, learner)
            learner = segment.pass_through(learner)
        return self._segments[-1].forward(learner)

    def backward(self) -> Iterator[tuple[Learner, Gradient]]:
        """Goes back through them."""
        while self._segments:
            segment = self._segments.pop()
            n = len(self._segments)
            if n < len(self._starts):
                segment.forward(self._starts[n])
            yield from segment.backward()


class _Segment:
    """What is kept of some updates for the way back: the learner before every so many of them.

    From there the gradients of as many updates are recorded when the way back comes to them. Those
    of the last are recorded on the way forward, if there is room for more than one.
    """

    def __init__(
        self, engine: Recorder, rule: UpdateFunction, steps: Sequence[Step], graphs: int
    ) -> None:
        self._engine, self._rule, self._steps, self._graphs = engine, rule, steps, graphs
        self._recorded: list[tuple[Learner, Gradient]] = []

    def pass_through(self, learner: Learner) -> Learner:
        """Makes all updates and keeps nothing of them."""
        return self._made(learner, self._steps)

    def forward(self, learner: Learner) -> Learner:
        """Makes all updates and keeps what the way back needs."""
        k, updates = self._graphs, len(self._steps)
        once = (updates - 1) // k * k if k > 1 else updates  # from here on they are recorded
        self._kept = WeightStore(learner, once // k)
        for n in range(once // k):
            self._kept.keep(n, learner)
            learner = self._made(learner, self._steps[n * k : n * k + k])
        self._record(learner, self._steps[once:])
        return self._after(self._steps[-1]) if self._recorded else learner

    def backward(self) -> Iterator[tuple[Learner, Gradient]]:
        """Goes back through them."""
        left = len(self._kept)
        for _ in self._steps:
            if not self._recorded:
                left -= 1
                begin = left * self._graphs
                self._record(self._kept[left], self._steps[begin : begin + self._graphs])
            yield self._recorded.pop()

    def _made(self, learner: Learner, steps: Sequence[Step]) -> Learner:
        with torch.no_grad():
            return updated(self._rule, self._engine, learner, steps)

    def _record(self, learner: Learner, steps: Sequence[Step]) -> None:
        """Records the gradients of some updates, making those between them."""
        for n, step in enumerate(steps):
            if n:
                learner = self._after(steps[n - 1])
            self._recorded.append((learner, self._engine.record(learner.weights, step)))

    def _after(self, step: Step) -> Learner:
        """The learner after the update that was recorded last."""
        before, g = self._recorded[-1]
        return self._rule.update(before, g.values, step)


class WeightStore:
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

    def keep(self, t: int, learner: Learner) -> None:
        """Copies a learner to its place."""
        for place, own in zip(self[t].leaves(), learner.leaves(), strict=True):
            place.copy_(own)

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


def divided(steps: Sequence[Step], segments: int) -> list[Sequence[Step]]:
    """Runs of equal length; the last may be shorter."""
    length = math.ceil(len(steps) / segments)
    return [steps[begin : begin + length] for begin in range(0, len(steps), length)]
