"""A distillation: a distiller with the data it learns from and those it is measured on."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from torch import Tensor, nn

from ..artefact import DistilledData
from ..artefact.make import make as make_artefact
from ..baselines.start import start_images
from ..core.distilled import Steps
from ..core.distiller import Distiller, DistillerState
from ..core.network import Network
from ..core.random import minibatch, stream
from ..core.values import one_line
from ..core.vanishing import FIRST_STEPS, check_accepted, check_gradient
from ..data import LabelledData
from ..data.features import Features
from ..engine import (
    EngineRecord,
    Engines,
    continued,
    record_of,
    using,
)
from ..engine.frozen_prefix import Split
from ..evaluation.validation import Validation
from ..pixels import are_images
from ..pools import at_most
from .config import MACHINE, RunConfig
from .seams import Given
from .store.fingerprint import fingerprint, recognised
from .store.metrics import HeldOutScore, LearningRates, MetricsRow
from .store.snapshots import is_due
from .store.state import Measured, RunState
from .team.processes import Processes

VALIDATION_NETWORKS = 8
NOTHING = Given()


@dataclass(frozen=True)
class Distillation:
    """All that outer steps need, and nothing that changes with them.

    Attributes:
        config: The settings, complete.
        distiller: Algorithm 1.
        network: The whole network.
        module: The user's module.
        data: The training data that remain.
        held_out: The validation data, if there are.
        split: The network in two, where its first layers are frozen. Then the distiller unrolls
            only the rest, and a minibatch of real data is one of features.
        team: The processes among which networks are divided.
        notes: What the user should know of the initial weights.
    """

    config: RunConfig
    distiller: Distiller
    network: Network
    module: nn.Module
    data: LabelledData
    held_out: LabelledData | None
    split: Split | None = None
    team: Processes = field(default_factory=Processes)
    notes: tuple[str, ...] = ()

    __repr__ = one_line

    def with_config(self, config: RunConfig) -> "Distillation":
        """The same with other settings of the schedule."""
        return replace(self, config=config, distiller=replace(self.distiller, config=config))

    def replanned(self, outer_step: int, iterations: int) -> "Distillation":
        """The same schedule over as many outer steps as process 0 says; all processes agree."""
        iterations = self.team.agree(iterations)
        if iterations == self.config.iterations:
            return self
        return self.with_config(self.config.replanned(outer_step, iterations))

    @property
    def engine_record(self) -> EngineRecord:
        """What computes: all that is known to change the last bits of a result."""
        config, engine = self.config, self.distiller.engine
        with using(config.engine):
            return record_of(engine, self.network, config.threads or 1, self.team.size)

    def images(self, state: DistillerState) -> Steps:
        """The distilled data as they stand: images, also where features are unrolled."""
        return self.distiller.parametrisation.images(state.kept)

    def pictured(self, state: RunState) -> RunState:
        """The state with a snapshot of its distilled images, if one is due."""
        if not (is_due(state.outer_step) and are_images(self.data.input_shape)):
            return state
        images, normalization = self.images(state.distiller).inputs, self.data.normalization
        pixels = normalization.undo(images) if normalization else images
        return replace(state, snapshots=state.snapshots.taken(state.outer_step, pixels))

    def fingerprint(self, before: dict[str, str] | None = None) -> dict[str, str]:
        """Hashes of what the run works on; those of a checkpoint, where they are of the same data.

        Args:
            before: The fingerprint of the checkpoint that the run resumes from.
        """
        found = fingerprint(self.network, self.distiller.initialization, self.data, self.held_out)
        return recognised(before, found, self.data, self.held_out) if before else found

    def start(self) -> RunState:
        """The state before the first outer step."""
        inputs = start_images(self.config.start, self.data, self.distiller)
        return RunState(self.distiller.init(self.data.input_shape, self.data.labels, inputs))

    def like(self) -> DistillerState:
        """A state whose tensors have the right shapes and types."""
        return self.distiller.init(self.data.input_shape, self.data.labels)

    def late(self) -> DistillerState:
        """The same for the last outer step, which is computed as most are."""
        return replace(self.like(), outer_step=self.config.iterations - 1)

    def advance(self, state: RunState) -> tuple[RunState, MetricsRow]:
        """Makes one outer step on its numbered minibatch, and measures if that is due."""
        begin = time.perf_counter()
        distiller, metrics = self.distiller.step(state.distiller, self.batch(state.outer_step))
        rates = self.distiller.distilled(distiller).learning_rates
        check_accepted(distiller, metrics.loss, rates)
        if metrics.accepted and distiller.adam.count == min(FIRST_STEPS, self.config.iterations):
            check_gradient(self.network, distiller, metrics.loss)
        last = self.measure(distiller) if self.due(distiller.outer_step) else None
        seconds = time.perf_counter() - begin
        row = MetricsRow(
            outer_step=distiller.outer_step,
            loss=metrics.loss if metrics.accepted else None,
            gradient_norm=metrics.gradient_norm if metrics.accepted else None,
            outer_lr=metrics.outer_lr,
            learning_rates=LearningRates.of(rates),
            rejected=distiller.rejected,
            held_out=last and HeldOutScore.of(last.reached),
            seconds=seconds,
        )
        engines = continued(state.engines, distiller.outer_step, self.engine_record)
        seconds += state.seconds
        after = replace(state, distiller=distiller, seconds=seconds, engines=engines)
        return after.measured(last, higher_is_better=self._higher_is_better), row

    def measure(self, state: DistillerState) -> Measured | None:
        """How good the distilled data of a state are on held-out training data, if there are."""
        if self._validation is None:
            return None
        steps = self.images(state)
        reached = self._validation.measure(self.distilled(steps, state.outer_step))
        if not math.isfinite(reached.mean):  # networks that diverged have no mean squared error
            return None
        return Measured(state.outer_step, steps, reached.claim(), self._stored(state))

    @property
    def validation_networks(self) -> int:
        """How many networks are trained to measure on held-out training data."""
        initialization = self.distiller.initialization
        return 1 if initialization.fixed else at_most(initialization, VALIDATION_NETWORKS)

    def closed(self, state: RunState) -> RunState:
        """The state of a run at its end, with a measurement of its last outer step."""
        if state.reached:
            return state
        last = self.measure(state.distiller)
        return state.measured(last, higher_is_better=self._higher_is_better)

    def last(self, state: RunState) -> DistilledData:
        """The distilled data of the last outer step, with what they reach on held-out data."""
        engines = self._engines(state, state.outer_step)
        images, stored = self.images(state.distiller), self._stored(state.distiller)
        made = self.distilled(images, state.outer_step, engines, stored)
        return made.with_claim(state.reached.reached) if state.reached else made

    def best(self, state: RunState) -> DistilledData | None:
        """The best distilled data on held-out training data, if there are such data."""
        best = state.best
        if best is None:
            return None
        engines = self._engines(state, best.outer_step)
        made = self.distilled(best.steps, best.outer_step, engines, best.stored)
        return made.with_claim(best.reached)

    def kept(self, state: RunState) -> DistilledData:
        """The result of a run: the best or the last, as the configuration says."""
        keep, best = self.config.keep, self.best(state)
        wanted = state.keeps_best(keep, higher_is_better=self._higher_is_better)
        return best if best and wanted else self.last(state)

    def _engines(self, state: RunState, outer_step: int) -> Engines:
        """The engines of the outer steps up to some, and the one that makes the test."""
        past = tuple(one for one in state.engines if one.outer_step <= outer_step)
        return continued(past, state.outer_step + 1, self.engine_record)

    def _stored(self, state: DistillerState) -> dict[str, Tensor]:
        """What an artefact stores in place of the inputs; a user's own cannot make them again."""
        own = ":" in self.distiller.parametrisation.of_images.name
        return {} if own else self.distiller.parametrisation.of_images.stored(state.kept)

    def distilled(
        self,
        steps: Steps,
        outer_step: int,
        engines: Engines = (),
        stored: Mapping[str, Tensor] | None = None,
    ) -> DistilledData:
        """Distilled data with all that is needed to use them.

        Args:
            steps: The distilled data.
            outer_step: Their outer step.
            engines: The engines that computed them.
            stored: What the artefact stores in place of their inputs, if it does.
        """
        distiller = self.distiller
        settings: dict[str, Any] = self.config.mapping()
        rates = steps.learning_rates * self.config.rates_factor
        made = replace(distiller.scheduled(steps), learning_rates=rates, coefficients=None)
        return make_artefact(
            made,
            network=self.network,
            module=self.module,
            initialization=distiller.initialization,
            objective=distiller.objective,
            rule=distiller.rule.settled(steps.coefficients),
            data=self.data,
            configuration={
                **{name: value for name, value in settings.items() if name not in MACHINE},
                "data": self.data.name,
                "adjoint": repr(distiller.adjoint),
                "outer_step": outer_step,
                "validation_examples": len(self.held_out) if self.held_out else 0,
                "training_examples": len(self.data),
            },
            engines=engines,
            parametrisation=distiller.parametrisation.of_images,
            stored=stored or {},
        )

    def batch(self, t: int) -> tuple[Tensor, Tensor]:
        """The minibatch of real data of outer step t."""
        config, network = self.config, self.network
        indices = minibatch(config.seed, t, config.batch_size, len(self.data))
        views = stream(config.seed, "augmentation", t)
        if self._features:
            return self._features.batch(indices, views)
        return self.data.batch(indices, network.device, network.dtype, views)

    @cached_property
    def _features(self) -> Features | None:
        """The features of the training data, where the network's first layers are frozen."""
        split, network = self.split, self.network
        return Features(self.data, split.prefix, network.device, network.dtype) if split else None

    @cached_property
    def _validation(self) -> Validation | None:
        if self.held_out is None:
            return None
        count = self.validation_networks
        return Validation(self.held_out, self.network, count, self.split, self.team)

    @property
    def _higher_is_better(self) -> bool:
        return self.distiller.objective.higher_is_better

    def due(self, outer_step: int) -> bool:
        """Whether the distilled data are measured on held-out data after this outer step."""
        every = self.config.validate_every or self.config.iterations
        return outer_step % every == 0 or outer_step == self.config.iterations
