"""The fast engine: the plain engine's interface, and the same numbers up to rounding."""

import copy
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace

import torch
from torch import Tensor

from ..core.distilled import Step, Steps
from ..core.engine import (
    Combine,
    Found,
    Gradient,
    Learn,
    Recorded,
    Sample,
    Tape,
    UpdateFunction,
)
from ..core.gradients import gradient
from ..core.learner import Learner
from ..core.network import Network, Weights
from ..core.objective import Objective
from .allocation import keep_freed_memory
from .chained import ChainedFunctions, chained
from .choice import EngineName, chosen, using
from .compiled import CompiledGradient, Functions
from .garbage import uncollected
from .graph_budget import (
    CHAINED_GRAPH_BYTES,
    CHAINED_WINDOW_BYTES,
    GRAPH_BYTES,
    WIDE_GRAPH_BYTES,
    GraphBudget,
    graph_bytes,
)
from .micro_batches import InParts, check_inner_mean, check_no_mixing, losses_in_parts
from .shares import losses_of_shares
from .tape import SegmentedTape
from .team import ALONE, Team
from .traced import TracedFunctions, traced, worth_tracing
from .vectorised import Vectorised


class FastEngine:
    """Networks side by side in groups over threads, divided among the members of a team.

    Args:
        network: The architecture.
        objective: What is descended on distilled data, and measured on real data.
        micro_batch: Images to compute at a time; all by default.
        compiled: Whether updates are compiled, where the layers are not known.
        team: The members among which networks are divided.

    Attributes:
        functions: The compiled functions of the updates, if they are compiled.
    """

    def __init__(
        self,
        network: Network,
        objective: Objective,
        *,
        micro_batch: int | None = None,
        compiled: bool = False,
        team: Team = ALONE,
    ) -> None:
        self.network, self.objective = network, objective
        self.micro_batch, self.team = micro_batch, team
        self.vectorised = Vectorised(network)
        if micro_batch:
            check_no_mixing(network)
            check_inner_mean(objective)
        # Made here: the copies of an engine share them, and what could not be compiled.
        wanted = compiled and self.compilable
        self.functions = Functions(network, objective.inner_loss) if wanted else None
        self._threads = 1
        self._divides_examples = False
        self._name: EngineName = chosen()  # what is traced later uses the same engine
        self._chained = (
            None if micro_batch else chained(network, self.vectorised.stacked, objective)
        )
        self._traces = self.traced
        self._in_outer_step = False
        self._prepared = False
        # Where torch.func computes networks side by side, graphs do not tell what they keep.
        narrow = self.vectorised.stacked and self.vectorised.together(traced=self.traced)
        room = GRAPH_BYTES if narrow else WIDE_GRAPH_BYTES
        if not narrow and self.vectorised.has_large_results:
            keep_freed_memory()
        self._budget = GraphBudget(room, with_weights=not narrow)
        if self._chained:
            self._budget = GraphBudget(CHAINED_GRAPH_BYTES, CHAINED_WINDOW_BYTES)

    divisible = True

    @property
    def compilable(self) -> bool:
        """Whether compiled updates may be faster: not where layers are known."""
        on_cpu = self.network.device.type == "cpu"
        return on_cpu and self.vectorised.stacked is None and not self.micro_batch

    @property
    def compiled(self) -> bool:
        """Whether updates are compiled; not if that has failed."""
        return self.functions is not None and not self.functions.failed

    @property
    def traced(self) -> bool:
        """Whether updates are traced, where that is possible and as soon as it is worth while."""
        return self.network.device.type == "cpu" and not self.micro_batch and not self.compiled

    def losses(self, weights: Weights, step: Step) -> Tensor:
        """ℓ(x̃, θ_j) of J networks, (J,): on one step for all, or on a step of its own each."""
        own = step.learning_rate.ndim
        losses = self.vectorised.own_losses if own else self.vectorised.losses
        return losses(weights, step.inputs, step.labels, self.objective.inner_loss)

    def gradient(self, weights: Weights, step: Step) -> Weights:
        """G = ∇ℓ(x̃, θ); differentiable again if gradients are enabled."""
        if self.micro_batch:
            return InParts(self.losses, weights, step, self.micro_batch).values
        if self.functions and step.learning_rate.ndim and not torch.is_grad_enabled():
            found = self.functions.gradient(weights, step)
            if found is not None:
                return found
        if not torch.is_grad_enabled():
            functions = self._in_c(weights, step)
            if functions is None and self._in_outer_step:  # before a window
                functions = self._traced(weights, [step])
            if functions:
                return functions.gradient(weights, step)
        return self._gradient(weights, step)

    def record(self, weights: Weights, step: Step) -> Gradient:
        """The same, recorded so that it can be pulled back through."""
        if self.micro_batch:
            return InParts(self.losses, weights, step, self.micro_batch)
        if self.functions and step.learning_rate.ndim and not self.functions.failed:
            return CompiledGradient(self.functions, self._gradient, weights, step)
        chain = self._in_c(weights, step)
        return chain.record(weights, step) if chain else Recorded(self._gradient, weights, step)

    def tape(
        self, rule: UpdateFunction, learner: Learner, steps: Sequence[Step], segments: int | None
    ) -> Tape:
        """A tape that keeps as many weights and graphs as there is room for."""
        functions: TracedFunctions | None = None
        if worth_tracing(len(steps)) and not self._in_c(learner.weights, steps[0]):
            functions = self._traced(learner.weights, steps)
        graphs = 1
        measurable = self.vectorised.stacked or functions or len(steps[0].inputs) == 1
        if measurable and not self.micro_batch and not self.compiled and not segments:
            graphs = self._budget.graphs(functions or self, learner, steps[0], len(steps))
        recorder = functions or self
        return SegmentedTape(recorder, rule, learner, steps, graphs=graphs, segments=segments)

    def graph_bytes(self, learner: Learner, step: Step) -> int:
        """The bytes that a recorded gradient keeps beside the learner and the step."""
        chain = self._in_c(learner.weights, step)
        return chain.graph_bytes(learner, step) if chain else graph_bytes(self, learner, step)

    def outer_losses(self, weights: Weights, inputs: Tensor, labels: Tensor) -> Tensor:
        """The losses (J,) on real data; in parts, where they are means over examples."""
        if self._divides_examples:
            alone = copy.copy(self)
            alone._divides_examples = False
            return losses_of_shares(alone.outer_losses, weights, inputs, labels, self.team)
        loss, fast = self.objective.outer_loss, self.vectorised
        if not self.objective.is_mean:
            return fast.losses(weights, inputs, labels, loss)
        if self.micro_batch and not fast.stacked:  # which takes parts of its own accord

            def losses(weights: Weights, inputs: Tensor, labels: Tensor) -> Tensor:
                return fast.losses(weights, inputs, labels, loss)

            return losses_in_parts(losses, weights, inputs, labels, self.micro_batch)
        return fast.mean_losses(weights, inputs, labels, loss, self._threads)

    def mean_over(
        self, numbers: range, taped: int, sample: Sample, learn: Learn, combine: Combine
    ) -> Found:
        """This member's share of the networks in groups over threads, then the team's mean.

        Several members with one network all compute it, each with its share of the minibatch.
        """
        mine, engine = self.team.share(numbers), copy.copy(self)
        engine._divides_examples = len(numbers) == 1 < self.team.size
        computed = numbers if engine._divides_examples else mine
        # By the numbers, so that a run that is resumed makes each outer step as before.
        engine._traces = self.traced and worth_tracing(taped, before=numbers.start * taped)
        engine._in_outer_step = True
        theta0 = sample(computed)
        groups = self.vectorised.groups(len(computed), traced=engine._traces)
        engine._threads = self.vectorised.threads // max(1, groups.workers)

        def group(chosen: range, _: object) -> tuple[Tensor, Steps]:
            own = slice(chosen.start, chosen.stop)
            return learn(engine, {n: w[own] for n, w in theta0.items()}, computed[own])

        if engine._traces and not self._prepared:  # what is traced must not meet other threads
            self._prepared, groups = True, replace(groups, workers=min(1, groups.workers))
        with uncollected() if engine._traces else nullcontext():
            losses, gradient = _together(groups.each(group))
        # Of one network that all have computed, all take the gradient of the one whose share it is.
        return self.team.mean(numbers, losses[: len(mine)], combine(gradient))

    def _in_c(self, weights: Weights, step: Step) -> ChainedFunctions | None:
        """The updates in C, if the layers follow one another and are known there."""
        chain = self._chained
        return chain if chain and chain.takes(weights, step) else None

    def _traced(self, weights: Weights, steps: Sequence[Step]) -> TracedFunctions | None:
        """The updates as straight-line code, where it is faster and can be had."""
        fast = self.vectorised.stacked
        fast = fast if fast and fast.by_kernels else None  # others are faster as they are
        several = len(steps[0].inputs) > 1 and not fast and not self.vectorised.small
        shapes = {(step.inputs.shape, step.labels.shape) for step in steps}
        if several or len(shapes) > 1 or not self._traces:
            return None
        with using(self._name):
            return traced(self.network, fast, self.objective, weights, steps[0])

    def _gradient(self, weights: Weights, step: Step) -> Weights:
        return gradient(lambda theta: self.losses(theta, step).sum(), weights)


def _together(groups: Sequence[tuple[Tensor, Steps]]) -> tuple[Tensor, Steps]:
    """All losses in order and the gradient of their mean, from those of groups of networks."""
    if len(groups) == 1:
        return groups[0]
    losses = torch.cat([own for own, _ in groups])
    shares = [len(own) / len(losses) for own, _ in groups]
    scaled = [
        replace(own, **{name: share * g for name, g in own.tensors.items()})
        for share, (_, own) in zip(shares, groups, strict=True)
    ]
    return losses, Steps.joined(scaled)
