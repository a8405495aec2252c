"""The distiller: Algorithm 1, with several steps and epochs.

``init`` makes a state, ``step`` turns a state and a minibatch of real data into the next
state. Neither has side effects.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor

from ..errors import ConfigError
from .adjoint import Adjoint, BackGradient
from .along import Along
from .distilled import Steps, noise
from .distiller_state import DistillerState, Metrics
from .engine import Engine, Found, PlainEngine, Tree
from .initialization import Initialization, networks_for
from .inner_batches import InnerBatches
from .layout import start_labels
from .network import Network, Weights
from .objective import Objective
from .optimizer import adam, adam_init
from .parametrisation import LABELS, RATES, Parametrisation, Plain
from .random import stream
from .settings import DistillerConfig, default_networks
from .update import GradientDescent, UpdateRule
from .variety import Pace, Variety
from .view import View, Viewed

NORM_DECAY = 0.9
"""Of the running mean of the gradient's norm."""

Batch = tuple[Tensor, Tensor]
"""Real inputs and their labels."""


@dataclass(frozen=True)
class Distiller:
    """Learns distilled data for a network, an initialization and an objective.

    Attributes:
        network: The architecture.
        initialization: p(θ₀), where initial weights come from.
        objective: What the trained networks are judged by.
        config: The settings.
        adjoint: How the gradient travels back through the updates.
        rule: How learners change their weights.
        parametrisation: How what is learned becomes distilled data.
        view: How real and distilled images are seen, drawn anew for every outer step; as they are
            by default.
        own_engine: What computes; by default the plain engine.
        whole: The network that initial weights are drawn for, where ``network`` is a part of it.
        variety: What is drawn anew for every outer step.
        pace: Which learning rates are used.
    """

    network: Network
    initialization: Initialization
    objective: Objective
    config: DistillerConfig
    adjoint: Adjoint = field(default_factory=BackGradient)
    rule: UpdateRule = field(default_factory=GradientDescent)
    parametrisation: Parametrisation = field(default_factory=Plain)
    view: View | None = None
    own_engine: Engine | None = None
    whole: Network | None = None
    variety: Variety = field(default_factory=Variety)
    pace: Pace = field(default_factory=Pace)

    def __post_init__(self) -> None:
        if self.initialization.fixed and (self.config.networks or 1) > 1:
            raise ConfigError(
                f"A fixed initialization is one network, but networks is {self.config.networks}.",
                "Leave networks out, or choose a random initialization.",
            )
        if self.adjoint.pool and self.variety:
            raise ConfigError(
                f"The {self.adjoint.name} adjoint has networks of its own, which do not vary.",
                "Choose another adjoint, or leave out robust, architectures, ordinary and jitter.",
            )
        if 0 < self.adjoint.pool < self.networks:
            raise ConfigError(
                f"networks is {self.networks}, but {self.adjoint.pool} networks train along.",
                "Lower networks, or let more train along: --adjoint 'ridge-head(pool=20)'.",
            )

    @cached_property
    def engine(self) -> Engine:
        """What computes the losses and gradients of the networks."""
        return self.own_engine or PlainEngine(self.network, self.objective)

    @property
    def networks(self) -> int:
        """J: how many networks are sampled per outer step."""
        return self.config.networks or default_networks(fixed=self.initialization.fixed)

    def init(
        self, input_shape: torch.Size, labels: Tensor, inputs: Tensor | None = None
    ) -> DistillerState:
        """Line 1 of Algorithm 1: x̃ from noise, η̃ ← η̃₀.

        Args:
            input_shape: The shape of one real input.
            labels: The labels of the real data, from which distilled labels are laid out.
            inputs: What x̃ starts from in place of noise, (steps, images, …).
        """
        config, network = self.config, self.network
        start = start_labels(self.objective, network.outputs, labels, config, config.seed)
        if inputs is None:
            inputs = noise(config.seed, (*start.shape[:2], *input_shape))
        rate = torch.tensor(config.learning_rate, dtype=torch.float64)
        steps = self.scheduled(Steps(inputs, start, rate.expand(config.epochs, config.steps)))
        steps = replace(
            steps.to(network.device, network.dtype), learning_rates=steps.learning_rates
        )
        parameters = self.parametrisation.start(steps, self.objective, network.outputs)
        average = dict(parameters.learned) if config.averaging else {}
        pool = self._along.start() if self._along else {}
        return DistillerState(0, *parameters, adam_init(parameters.learned), average, pool=pool)

    def distilled(self, state: DistillerState) -> Steps:
        """The distilled data as they stand."""
        return self.scheduled(self.parametrisation.steps(state.kept))

    def scheduled(self, steps: Steps) -> Steps:
        """The same distilled data, with how updates draw their images."""
        config = self.config
        if config.inner_batch is None and not config.shuffle:
            return steps
        images = steps.inputs.shape[1]
        classes = 1 if config.images_per_step else images // config.images_per_class
        inner = InnerBatches(config.inner_batch or images // classes, classes)
        if config.shuffle:
            inner = InnerBatches(inner.size)
        inner.check(config.steps * images)
        return replace(steps, inner=inner)

    def step(self, state: DistillerState, batch: Batch) -> tuple[DistillerState, Metrics]:
        """Lines 4 to 9: one outer step on a minibatch of real data, which line 3 has drawn.

        An outer step whose loss or gradient is not finite is rejected: the state moves on
        to the next outer step with its distilled data unchanged.
        """
        config, t = self.config, state.outer_step
        losses, gradient = self.at(t).gradient(state, batch)
        norm = _length(gradient)
        gradient, running = self._clipped(gradient, float(norm), state.norm)
        loss, lr = losses.mean(), config.outer_lr_at(t)
        own = {RATES: config.rates_lr, LABELS: config.labels_lr}
        each = {name: lr * (one or config.outer_lr) / config.outer_lr for name, one in own.items()}
        # Line 9: x̃ ← x̃ − α ∇x̃ L, η̃ ← η̃ − α ∇η̃ L, by Adam.
        parameters, moments = adam(state.parameters, gradient, state.adam, lr, config.betas, each)
        parameters = self.parametrisation.project(parameters)
        # Finite gradients may still overflow in Adam's squares or with a huge learning rate.
        accepted = _finite(loss, norm, *parameters.values(), *moments.second.values())
        metrics = Metrics(float(loss), float(norm), lr, accepted)
        if not accepted:
            return replace(
                state,
                outer_step=t + 1,
                rejected=state.rejected + 1,
                rejected_in_a_row=state.rejected_in_a_row + 1,
            ), metrics
        old = config.averaging_at(moments.count)
        return replace(
            state,
            outer_step=t + 1,
            parameters=parameters,
            adam=moments,
            average={n: old * a + (1 - old) * parameters[n] for n, a in state.average.items()},
            rejected_in_a_row=0,
            pool=self._advanced(state) if self._along else {},
            norm=running,
        ), metrics

    def _clipped(
        self, gradient: Tree, norm: float, mean: float | None
    ) -> tuple[Tree, float | None]:
        """The gradient, no longer than ``clip_factor`` running means of its norm; and the mean."""
        if self.config.clip_factor is None:
            return gradient, mean
        if mean is None or norm == 0:
            return gradient, mean or norm
        most = self.config.clip_factor * mean
        if norm > most:
            gradient, norm = {n: g * (most / norm) for n, g in gradient.items()}, most
        return gradient, NORM_DECAY * mean + (1 - NORM_DECAY) * norm

    def at(self, outer_step: int) -> "Distiller":
        """The distiller of one outer step, with what it draws."""
        if not self.variety:
            return self
        drawn = self.variety.draw(stream(self.config.seed, "variety", outer_step))
        made = replace(self, rule=drawn.rule or self.rule, pace=drawn.pace, variety=Variety())
        if drawn.other is None:
            return made
        return replace(made, network=drawn.other.network, own_engine=drawn.other, whole=None)

    def gradient(self, state: DistillerState, batch: Batch) -> Found:
        """Lines 4 to 9: the losses (J,) after all updates, and the gradient of their mean."""
        config, t, parameters = self.config, state.outer_step, state.current
        parametrisation, (inputs, labels) = self._seen(t, batch)
        steps = self.scheduled(parametrisation.steps(parameters))
        steps = replace(steps, learning_rates=self.pace.rates(steps.learning_rates))

        def norms() -> Tensor:
            return self._norms(steps, t)

        window = stream(config.seed, "window", t)
        adjoint = self.adjoint.placed(config.share_at(t), norms, window)

        def sample(numbers: range) -> Weights:  # line 4: θ₀ ~ p(θ₀)
            if self._along:
                return self._along.weights(state.pool, numbers)
            return self._sample("network", numbers)

        def learn(engine: Engine, theta0: Weights, numbers: range) -> Found:
            # Lines 5 to 8, for some networks.
            own = steps.for_networks(config.seed, "network", numbers)
            losses, gradient = adjoint(
                self.rule,
                engine,
                self.rule.start(theta0),
                own if own.inner else own.for_each(len(numbers)),
                lambda weights: engine.outer_losses(weights, inputs, labels),
                stream(config.seed, "window", t),
            )
            rates = self.pace.slope * gradient.learning_rates
            gradient = replace(gradient, learning_rates=rates)
            each = parametrisation.pull_back_each(parameters, gradient)
            return losses, self._mean(each, len(losses))

        # Line 9: ∇ Σⱼ ℒ⁽ʲ⁾, here of the mean over all J networks.
        return self.engine.mean_over(self._numbers(t), sample, learn)

    def _numbers(self, t: int) -> range:
        """The numbers of the networks of an outer step."""
        return range(t * self.networks, (t + 1) * self.networks)

    def _sample(self, purpose: str, numbers: Sequence[int]) -> Weights:
        generators = networks_for(self.config.seed, purpose, numbers)
        return self.initialization.sample(self.whole or self.network, generators)

    @cached_property
    def _along(self) -> Along | None:
        """The networks that train along, where the adjoint wants some."""
        pool, updates = self.adjoint.pool, self.adjoint.updates
        if not pool:
            return None
        return Along(pool, updates, self.rule, lambda n: self._sample("network along", [n]))

    def _advanced(self, state: DistillerState) -> dict[str, Tensor]:
        """The networks that train along, after this outer step's updates on its distilled data."""
        assert self._along
        t, steps = state.outer_step, self.scheduled(self.parametrisation.steps(state.current))
        own = steps.for_networks(self.config.seed, "network along", [t])
        return self._along.advanced(state.pool, self._numbers(t), self.engine, own)

    def _norms(self, steps: Steps, t: int) -> Tensor:
        """The gradient norms (T,) of the updates of a network that is trained for this alone."""
        learner = self.rule.start(self._sample("window's network", [t]))
        found: list[Tensor] = []
        with torch.no_grad():
            for step in steps.for_networks(self.config.seed, "window's network", [t]):
                g = self.engine.gradient(learner.weights, step)
                learner = self.rule.update(learner, g, step)
                found.append(_length(g))
        return torch.stack(found)

    def _seen(self, t: int, batch: Batch) -> tuple[Parametrisation, Batch]:
        """Distilled and real data as outer step t sees them: through the same view."""
        if self.view is None:
            return self.parametrisation, batch
        look = self.view.draw(stream(self.config.seed, "view", t))
        return Viewed(self.parametrisation, look), (look(batch[0]), batch[1])

    def _mean(self, each: Mapping[str, Tensor], networks: int) -> dict[str, Tensor]:
        """The mean over networks of their gradients, each no longer than ``clip_norm``.

        Args:
            each: The gradient (J, …) of the networks' mean loss, for what each network was given.
            networks: J.
        """
        found = {name: networks * g for name, g in each.items()}
        if self.config.clip_norm is not None:
            shares = self.config.clip_norm / _lengths(found.values()).clamp(self.config.clip_norm)
            found = {n: torch.einsum("j...,j->j...", g, shares.to(g)) for n, g in found.items()}
        return {name: g.mean(0) for name, g in found.items()}


def _length(tensors: Tree) -> Tensor:
    """The norm of all tensors together."""
    return torch.linalg.vector_norm(
        torch.stack([torch.linalg.vector_norm(g.double()) for g in tensors.values()])
    )


def _lengths(gradient: Iterable[Tensor]) -> Tensor:
    """The norms (J,) of the gradients of J networks, all tensors together."""
    norms = [torch.linalg.vector_norm(g.double().flatten(1), dim=1) for g in gradient]
    return torch.linalg.vector_norm(torch.stack(norms), dim=0)


def _finite(*tensors: Tensor) -> bool:
    return all(bool(torch.isfinite(tensor).all()) for tensor in tensors)
