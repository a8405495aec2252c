"""A distillation: a distiller with the data it learns from and those it is measured on."""

import math
import time
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor, nn

from ..artefact import Claim, DistilledData
from ..artefact.make import make
from ..core.adjoint import Adjoint
from ..core.device import resolve_device, resolve_dtype
from ..core.distilled import Steps
from ..core.distiller import Distiller, DistillerState, Metrics
from ..core.initialization import Initialization
from ..core.network import Network
from ..core.objective import Objective
from ..core.random import minibatch, stream
from ..data import LabelledData
from ..data.features import Features
from ..engine.frozen_prefix import split, steps_through
from ..errors import NonFiniteError
from ..evaluation import Evaluation, curve, evaluate
from ..pools import PoolInit, at_most, check_enough
from .config import MACHINE, RunConfig
from .initialization import Beginning
from .start import start_images
from .state import Measured, RunState
from .store.metrics import HeldOutScore, LearningRates, MetricsRow
from .team.processes import Processes

REJECTIONS_ALLOWED = 5
VALIDATION_NETWORKS = 8


@dataclass(frozen=True)
class Distillation:
    """All that outer steps need, and nothing that changes with them.

    Attributes:
        config: The settings, complete.
        distiller: Algorithm 1.
        module: The user's module.
        data: The training data that remain.
        held_out: The validation data, if there are.
        team: The processes among which networks are divided.
        notes: What the user should know of the initial weights.
    """

    config: RunConfig
    distiller: Distiller
    module: nn.Module
    data: LabelledData
    held_out: LabelledData | None
    team: Processes = field(default_factory=Processes)
    notes: tuple[str, ...] = ()

    @classmethod
    def prepare(
        cls,
        config: RunConfig,
        data: LabelledData,
        module: nn.Module,
        initialization: Initialization | None = None,
        objective: Objective | None = None,
        adjoint: Adjoint | None = None,
        device: torch.device | None = None,
        team: Processes | None = None,
    ) -> "Distillation":
        """Puts a configuration, data and a module together; fills in what follows from them.

        Initialization, objective, adjoint and device are those that the configuration names,
        unless they are given. The number of threads is set, since the last bit of a sum
        depends on it.
        """
        team = team or Processes()
        torch.set_num_threads(config.threads or team.threads())
        device = device or team.device(resolve_device(config.device))
        dtype = None if config.dtype is None else resolve_dtype(config.dtype)
        beginning = Beginning.of(config, module, initialization)
        module = beginning.module
        network = Network(module, data.example(), device=device, dtype=dtype)
        objective = objective or config.make_objective()
        initialization = beginning.initialization(network, data)
        check_enough(initialization, config.test_networks or 1)
        adjoint = adjoint or config.make_adjoint()
        objective.check(network.outputs, data.labels, complete=True)
        held_out = None
        if config.validation:
            data, held_out = data.hold_out(config.validation, config.seed)
        config = config.for_examples(len(data))
        distiller = Distiller(
            *(network, initialization, objective, config, adjoint, team, split(network)),
            compiled=bool(config.compiled),
        )
        config = replace(
            config,
            networks=distiller.networks,
            device=device.type,
            processes=team.size,
            threads=torch.get_num_threads(),
            compiled=distiller.compiled and distiller.compilable,
            dtype=str(network.dtype).removeprefix("torch."),
        )
        if isinstance(initialization, PoolInit):  # one that is extended later changes nothing
            config = replace(config, pool_networks=initialization.count)
        return cls(config, distiller, module, data, held_out, team, beginning.notes)

    def with_config(self, config: RunConfig) -> "Distillation":
        """The same with other settings of the schedule."""
        return replace(self, config=config, distiller=replace(self.distiller, config=config))

    def start(self) -> RunState:
        """The state before the first outer step."""
        inputs = start_images(self.config, self.data, self.distiller)
        return RunState(self.distiller.init(self.data.input_shape, self.data.labels, inputs))

    def like(self) -> DistillerState:
        """A state whose tensors have the right shapes and types."""
        return self.distiller.init(self.data.input_shape, self.data.labels)

    def advance(self, state: RunState) -> tuple[RunState, MetricsRow]:
        """Makes one outer step on its numbered minibatch, and measures if that is due."""
        begin = time.perf_counter()
        distiller, metrics = self.distiller.step(state.distiller, self.batch(state.outer_step))
        _stop_if_hopeless(distiller, metrics)
        last = self.measure(distiller) if self._due(distiller.outer_step) else None
        seconds = time.perf_counter() - begin
        rates = distiller.distilled.learning_rates.double()
        row = MetricsRow(
            outer_step=distiller.outer_step,
            loss=metrics.loss if metrics.accepted else None,
            gradient_norm=metrics.gradient_norm if metrics.accepted else None,
            outer_lr=metrics.outer_lr,
            learning_rates=LearningRates(
                min=float(rates.min()), mean=float(rates.mean()), max=float(rates.max())
            ),
            rejected=distiller.rejected,
            held_out=last and _held_out(last.reached),
            seconds=seconds,
        )
        best = last if last and self._better(last, state.best) else state.best
        return RunState(distiller, best, last or state.last, state.seconds + seconds), row

    def measure(self, state: DistillerState) -> Measured | None:
        """How good the distilled data of a state are on held-out training data, if there are."""
        if self.held_out is None:
            return None
        reached = self._evaluated(self.distilled(state.distilled, state.outer_step), self.held_out)
        if not math.isfinite(reached.mean):  # networks that diverged have no mean squared error
            return None
        return Measured(state.outer_step, state.distilled, reached.claim())

    def _evaluated(self, distilled: DistilledData, held_out: LabelledData) -> Evaluation:
        """How good distilled data are, by features where there are such."""
        split, features = self.distiller.split, self._held_out_features
        how: dict[str, Any] = {"networks": self.validation_networks, "team": self.team}
        network = self.distiller.network
        if split is None or features is None or not features.fit:
            return evaluate(distilled, held_out, device=str(network.device), **how)
        return curve(
            steps_through(split.body, distilled.steps.to(network.device, network.dtype)),
            split.head,
            partial(distilled.initial_weights, network),
            features.whole(),
            self.distiller.objective,
            rule=self.distiller.rule,
            **how,
        )[0]

    @property
    def validation_networks(self) -> int:
        """How many networks are trained to measure on held-out training data."""
        initialization = self.distiller.initialization
        return 1 if initialization.fixed else at_most(initialization, VALIDATION_NETWORKS)

    def last(self, state: RunState) -> DistilledData:
        """The distilled data of the last outer step, with what they reach on held-out data."""
        measured = state.last
        if measured is None or measured.outer_step != state.outer_step:
            measured = self.measure(state.distiller)
        made = self.distilled(state.distiller.distilled, state.outer_step)
        return made.with_claim(measured.reached) if measured else made

    def best(self, state: RunState) -> DistilledData | None:
        """The best distilled data on held-out training data, if there are such data."""
        best = state.best
        if best is None:
            return None
        return self.distilled(best.steps, best.outer_step).with_claim(best.reached)

    def distilled(self, steps: Steps, outer_step: int) -> DistilledData:
        """Distilled data with all that is needed to use them."""
        distiller = self.distiller
        settings: dict[str, Any] = self.config.mapping()
        return make(
            replace(steps, learning_rates=steps.learning_rates * self.config.rates_factor),
            network=distiller.network,
            module=self.module,
            initialization=distiller.initialization,
            objective=distiller.objective,
            rule=distiller.rule,
            data=self.data,
            configuration={
                **{name: value for name, value in settings.items() if name not in MACHINE},
                "data": self.data.name,
                "adjoint": repr(distiller.adjoint),
                "outer_step": outer_step,
                "validation_examples": len(self.held_out) if self.held_out else 0,
                "training_examples": len(self.data),
            },
        )

    def batch(self, t: int) -> tuple[Tensor, Tensor]:
        """The minibatch of real data of outer step t."""
        config, network = self.config, self.distiller.network
        indices = minibatch(config.seed, t, config.batch_size, len(self.data))
        views = stream(config.seed, "augmentation", t)
        if self._features:
            return self._features.batch(indices, views)
        return self.data.batch(indices, network.device, network.dtype, views)

    @cached_property
    def _features(self) -> Features | None:
        """The features of the training data, where the network's first layers are frozen."""
        return self._features_of(self.data)

    @cached_property
    def _held_out_features(self) -> Features | None:
        return self._features_of(self.held_out) if self.held_out else None

    def _features_of(self, data: LabelledData) -> Features | None:
        split, network = self.distiller.split, self.distiller.network
        return Features(data, split.body, network.device, network.dtype) if split else None

    def _due(self, outer_step: int) -> bool:
        every = self.config.validate_every or self.config.iterations
        return outer_step % every == 0 or outer_step == self.config.iterations

    def _better(self, one: Measured, other: Measured | None) -> bool:
        sign = 1 if self.distiller.objective.higher_is_better else -1
        return other is None or sign * one.reached.mean > sign * other.reached.mean


def _held_out(claim: Claim) -> HeldOutScore:
    return HeldOutScore(
        metric=claim.metric, mean=claim.mean, std=claim.std, networks=claim.networks
    )


def _stop_if_hopeless(state: DistillerState, metrics: Metrics) -> None:
    if state.rejected_in_a_row >= REJECTIONS_ALLOWED:
        rates = state.distilled.learning_rates
        raise NonFiniteError(
            f"The loss or its gradient was not finite in {REJECTIONS_ALLOWED} outer steps in a "
            f"row, up to outer step {state.outer_step} (loss {metrics.loss:.3g}, learning rates "
            f"up to {float(rates.max()):.3g}).",
            "Lower learning_rate or outer_lr, or set clip_norm.",
        )
