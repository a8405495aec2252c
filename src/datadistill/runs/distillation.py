"""A distillation: a distiller with the data it learns from and those it is measured on."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from ..artefact import DistilledData
from ..artefact.make import make as make_artefact
from ..artefact.recordable import check_recordable
from ..baselines.start import start_images
from ..core.adjoint import Adjoint
from ..core.device import resolve_device, resolve_dtype
from ..core.distilled import Steps
from ..core.distiller import Distiller, DistillerState
from ..core.engine import Engine
from ..core.initialization import Initialization
from ..core.network import Network
from ..core.objective import Objective
from ..core.parametrisation import Parametrisation, WithRule
from ..core.random import minibatch, stream
from ..core.values import one_line
from ..core.vanishing import FIRST_STEPS, check_accepted, check_gradient
from ..core.variety import ORDINARY, Variety
from ..data import LabelledData
from ..data.features import Features
from ..data.labels import as_classes, check_several_classes, from_zero
from ..data.token_ids import check_learnable
from ..engine import (
    EngineRecord,
    Engines,
    Team,
    chosen,
    continued,
    engine_for,
    record_of,
    using,
)
from ..engine.frozen_prefix import FrozenFeatures, Split, split_frozen
from ..engine.shares import check_shares
from ..engine.team import check_division
from ..evaluation.validation import Validation
from ..pixels import are_images
from ..pools import at_most, check_enough
from .config import MACHINE, RunConfig
from .initialization import InitialWeights, other_networks
from .seams import Given, make, make_rule, make_view, with_learned
from .state import Measured, RunState
from .store.fingerprint import fingerprint, recognised
from .store.metrics import HeldOutScore, LearningRates, MetricsRow
from .store.snapshots import is_due
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

    @classmethod
    def prepare(
        cls,
        config: RunConfig,
        data: LabelledData,
        module: nn.Module,
        given: Given = NOTHING,
        device: torch.device | None = None,
        team: Processes | None = None,
    ) -> "Distillation":
        """Puts a configuration, data and a module together; fills in what follows from them.

        What is given takes precedence over what the configuration names. The number of threads is
        set, since the last bit of a sum depends on it.
        """
        team, config = team or Processes(), config.bundled()
        torch.set_num_threads(config.threads or team.threads())
        device = device or team.device(resolve_device(config.device))
        dtype = None if config.dtype is None else resolve_dtype(config.dtype)
        for one in given.objects:
            one.check_recordable()
        beginning = InitialWeights.of(config, module, given.initialization)
        module = beginning.module
        objective = given.objective or make(Objective, config)
        if objective.has_classes:
            data = from_zero(as_classes(data))
            check_several_classes(data)
        check_learnable(module, data)
        network = Network(module, data.example(), device=device, dtype=dtype)
        check_recordable(network, module, data, config.steps * config.epochs)
        initialization = beginning.initialization(network, data)
        check_enough(initialization, config.test_networks or 1)
        objective.check(network.outputs, data.labels, complete=True)
        held_out = None
        if config.validation:
            data, held_out = data.hold_out(config.validation, config.seed)
        config = config.for_examples(len(data))
        with using(config.engine):
            engine = chosen()
            view = given.view or make_view(config)
            if view:
                view.check(data.input_shape)
            # Frozen layers see other images in every outer step: nothing is to be computed once.
            split = split_frozen(network) if engine != "plain" and view is None else None
            unrolled = split.head if split else network
            distiller = _distiller(config, unrolled, initialization, objective, given, split)
            others = other_networks(config, network, data)
            distiller = _with_engines(
                replace(distiller, whole=network, view=view), others, config, team
            )
        check_division(distiller.networks, team.size)
        if distiller.networks < team.size:
            for each in (unrolled, *others):
                check_shares(each, objective)
        config = replace(
            config,
            networks=distiller.networks,
            device=device.type,
            engine=engine,
            processes=team.size,
            threads=torch.get_num_threads(),
            compiled=distiller.engine.compiled,
            dtype=str(network.dtype).removeprefix("torch."),
            **initialization.resolved_settings(),
        )
        return cls(config, distiller, network, module, data, held_out, split, team, beginning.notes)

    def with_config(self, config: RunConfig) -> "Distillation":
        """The same with other settings of the schedule."""
        return replace(self, config=config, distiller=replace(self.distiller, config=config))

    def replanned(self, outer_step: int, iterations: int) -> "Distillation":
        """The same schedule over as many outer steps as process 0 says; all processes agree."""
        iterations = self.team.agree(iterations)
        if iterations == self.config.iterations:
            return self
        return self.with_config(self.config.replanned(outer_step, iterations))

    def computed_by(self, team: Team, *, compiled: bool | None = None) -> Distiller:
        """The distiller as a member of another team, or with other updates; to measure it."""
        config = self.config
        if compiled is not None:
            config = replace(config, compiled=compiled)
        with using(config.engine):
            others = [engine.network for engine in self.distiller.variety.others]
            return _with_engines(self.distiller, others, config, team)

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


def _distiller(
    config: RunConfig,
    network: Network,
    initialization: Initialization,
    objective: Objective,
    given: Given,
    split: Split | None,
) -> Distiller:
    """Algorithm 1 for what is given, or else for what the configuration names."""
    parametrisation = given.parametrisation or make(Parametrisation, config)
    rule = with_learned(given.rule or make_rule(config), config, network.weights)
    if rule.coefficients is not None:
        parametrisation = WithRule(parametrisation, rule.coefficients)
    return Distiller(
        network,
        initialization,
        objective,
        config,
        given.adjoint or make(Adjoint, config),
        rule,
        FrozenFeatures(parametrisation, split.prefix) if split else parametrisation,
    )


def _with_engines(
    distiller: Distiller, others: Sequence[Network], config: RunConfig, team: Team
) -> Distiller:
    """The distiller with the engines of all its networks, as the machine's settings have it."""

    def engine(network: Network) -> Engine:
        return engine_for(
            network,
            distiller.objective,
            micro_batch=config.micro_batch,
            compiled=bool(config.compiled),
            team=team,
        )

    variety = Variety(
        tuple(engine(network) for network in others),
        tuple(ORDINARY[name] for name in config.ordinary),
        config.jitter,
    )
    return replace(distiller, own_engine=engine(distiller.network), variety=variety)
