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
from .distilled import Steps, noise
from .engine import Engine, Found, PlainEngine
from .initialization import Initialization, networks_for
from .layout import start_labels
from .network import Network, Weights
from .objective import Objective
from .optimizer import AdamState, adam, adam_init
from .parametrisation import LABELS, RATES, Parameters, Parametrisation, Plain
from .random import stream
from .settings import DistillerConfig, default_networks
from .update import GradientDescent, UpdateRule
from .values import one_line, same
from .view import View, Viewed

Batch = tuple[Tensor, Tensor]
"""Real inputs and their labels."""


@dataclass(frozen=True)
class DistillerState:
    """Everything that changes from one outer step to the next.

    Attributes:
        outer_step: How many outer steps are done, rejected ones included.
        parameters: What is learned, by the names that the parametrisation gives.
        constants: Tensors behind the distilled data that are not learned.
        adam: The outer optimiser's state.
        average: The running mean of the parameters; empty without averaging.
        rejected: How many outer steps were rejected.
        rejected_in_a_row: How many of the last outer steps were.
    """

    outer_step: int
    parameters: dict[str, Tensor]
    constants: dict[str, Tensor]
    adam: AdamState
    average: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    rejected: int = 0
    rejected_in_a_row: int = 0

    __repr__ = one_line
    __eq__ = same

    @property
    def current(self) -> Parameters:
        """What the next outer step starts from."""
        return Parameters(self.parameters, self.constants)

    @property
    def kept(self) -> Parameters:
        """What becomes the distilled data: the running mean, if there is one."""
        return Parameters({**self.parameters, **self.average}, self.constants)


@dataclass(frozen=True)
class Metrics:
    """What is logged of one outer step."""

    loss: float
    gradient_norm: float
    outer_lr: float
    accepted: bool


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

    def __post_init__(self) -> None:
        if self.initialization.fixed and (self.config.networks or 1) > 1:
            raise ConfigError(
                f"A fixed initialization is one network, but networks is {self.config.networks}.",
                "Leave networks out, or choose a random initialization.",
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
        steps = Steps(inputs, start, rate.expand(config.epochs, config.steps))
        steps = replace(
            steps.to(network.device, network.dtype), learning_rates=steps.learning_rates
        )
        parameters = self.parametrisation.start(steps, self.objective, network.outputs)
        average = dict(parameters.learned) if config.averaging else {}
        return DistillerState(0, *parameters, adam_init(parameters.learned), average)

    def distilled(self, state: DistillerState) -> Steps:
        """The distilled data as they stand."""
        return self.parametrisation.steps(state.kept)

    def step(self, state: DistillerState, batch: Batch) -> tuple[DistillerState, Metrics]:
        """Lines 4 to 9: one outer step on a minibatch of real data, which line 3 has drawn.

        An outer step whose loss or gradient is not finite is rejected: the state moves on
        to the next outer step with its distilled data unchanged.
        """
        config, t = self.config, state.outer_step
        losses, gradient = self.gradient(state, batch)
        norm = torch.linalg.vector_norm(
            torch.stack([torch.linalg.vector_norm(g.double()) for g in gradient.values()])
        )
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
        ), metrics

    def gradient(self, state: DistillerState, batch: Batch) -> Found:
        """Lines 4 to 9: the losses (J,) after all updates, and the gradient of their mean."""
        config, t, parameters = self.config, state.outer_step, state.current
        parametrisation, (inputs, labels) = self._seen(t, batch)
        steps = parametrisation.steps(parameters)

        def sample(numbers: Sequence[int]) -> Weights:  # line 4: θ₀ ~ p(θ₀)
            generators = networks_for(config.seed, "network", numbers)
            return self.initialization.sample(self.whole or self.network, generators)

        def learn(engine: Engine, theta0: Weights) -> Found:  # lines 5 to 8, for some networks
            losses, gradient = self.adjoint(
                self.rule,
                engine,
                self.rule.start(theta0),
                steps.for_each(len(next(iter(theta0.values())))),
                lambda weights: engine.outer_losses(weights, inputs, labels),
                stream(config.seed, "window", t),
            )
            each = parametrisation.pull_back_each(parameters, gradient)
            return losses, self._mean(each, len(losses))

        # Line 9: ∇ Σⱼ ℒ⁽ʲ⁾, here of the mean over all J networks.
        return self.engine.mean_over(
            range(t * self.networks, (t + 1) * self.networks), sample, learn
        )

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


def _lengths(gradient: Iterable[Tensor]) -> Tensor:
    """The norms (J,) of the gradients of J networks, all tensors together."""
    norms = [torch.linalg.vector_norm(g.double().flatten(1), dim=1) for g in gradient]
    return torch.linalg.vector_norm(torch.stack(norms), dim=0)


def _finite(*tensors: Tensor) -> bool:
    return all(bool(torch.isfinite(tensor).all()) for tensor in tensors)
