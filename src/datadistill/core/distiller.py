"""The distiller: Algorithm 1, with several steps and epochs.

``init`` makes a state, ``step`` turns a state and a minibatch of real data into the next
state. Neither has side effects.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce

import torch
from torch import Tensor

from ..errors import ConfigError
from .adjoint import Adjoint, BackGradient
from .compiled import CompiledUpdate, Functions
from .distilled import Steps, noise, positive, raw_rate
from .engine import Engine
from .initialization import Initialization, networks_for
from .micro import InParts, check_no_mixing, losses_in_parts
from .network import Network, Weights
from .objective import Objective
from .optimizer import AdamState, adam, adam_init
from .random import stream
from .settings import DistillerConfig, default_networks
from .split import Split, steps_through
from .team import ALONE, Team, check_division
from .update import GradientDescent, Update, update_of


@dataclass(frozen=True)
class DistillerState:
    """Everything that changes from one outer step to the next.

    Attributes:
        outer_step: How many outer steps are done, rejected ones included.
        parameters: What is learned: ``inputs``; ``raw_rates`` and ``labels`` if learned.
        constants: Those of the three that are not learned.
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

    @property
    def current(self) -> Steps:
        """The distilled data that the next outer step starts from."""
        return _steps({**self.constants, **self.parameters})

    @property
    def distilled(self) -> Steps:
        """The distilled data as they stand: the running mean, if there is one."""
        return _steps({**self.constants, **self.parameters, **self.average})


@dataclass(frozen=True)
class Metrics:
    """What one outer step tells about itself."""

    loss: float
    gradient_norm: float
    outer_lr: float
    accepted: bool


@dataclass(frozen=True)
class Distiller:
    """Learns distilled data for a network, an initialization and an objective.

    In a team, each member computes its share of the networks, and all end with the same state.

    Attributes:
        network: The architecture.
        initialization: Where initial weights come from.
        objective: What the trained networks are judged by.
        config: The settings.
        adjoint: How the gradient travels back through the updates.
        team: The members among which networks are divided.
        split: The network in two, where its first layers are frozen: they are not unrolled, and
            a minibatch of real data is one of features, what they make of the images.
        compiled: Whether updates are compiled, where the engine does not know the layers.
    """

    network: Network
    initialization: Initialization
    objective: Objective
    config: DistillerConfig
    adjoint: Adjoint = field(default_factory=BackGradient)
    team: Team = ALONE
    split: Split | None = None
    compiled: bool = False

    def __post_init__(self) -> None:
        if self.config.micro_batch:
            check_no_mixing(self.network)
        if self.initialization.fixed and (self.config.networks or 1) > 1:
            raise ConfigError(
                f"A fixed initialization is one network; networks = {self.config.networks} would "
                "compute the same thing several times.",
                "Leave networks out, or choose a random initialization.",
            )
        check_division(self.networks, self.team.size, fixed=self.initialization.fixed)

    @property
    def networks(self) -> int:
        """J: how many networks are sampled per outer step."""
        return self.config.networks or default_networks(fixed=self.initialization.fixed)

    @property
    def rule(self) -> GradientDescent:
        """The update rule of the learners."""
        return GradientDescent(self.config.momentum)

    def init(
        self, input_shape: torch.Size, labels: Tensor, inputs: Tensor | None = None
    ) -> DistillerState:
        """Line 1 of Algorithm 1: x̃ from noise, η̃ ← η̃₀.

        Args:
            input_shape: The shape of one real input.
            labels: The labels of the real data, from which distilled labels are laid out.
            inputs: What x̃ starts from in place of noise, (steps, images, …).
        """
        config, network, objective = self.config, self.network, self.objective
        learn_labels = config.learn_labels
        if learn_labels is None:
            learn_labels = objective.learns_labels
        start = objective.start_labels(
            network.outputs, labels, config.steps, config.images_per_class, config.seed
        )
        if learn_labels:
            start = objective.soft_labels(network.outputs, start)
        raw = torch.full((config.epochs, config.steps), raw_rate(config.learning_rate))
        if inputs is None:
            inputs = noise(config.seed, (*start.shape[:2], *input_shape))
        steps = Steps(inputs, start, raw)
        steps = steps.to(network.device, network.dtype)
        tensors = {
            "inputs": steps.inputs,
            "labels": steps.labels,
            "raw_rates": steps.learning_rates,
        }
        learned = {"inputs": True, "labels": learn_labels, "raw_rates": config.learn_rates}
        parameters = {name: t for name, t in tensors.items() if learned[name]}
        constants = {name: t for name, t in tensors.items() if not learned[name]}
        average = dict(parameters) if config.averaging else {}
        return DistillerState(0, parameters, constants, adam_init(parameters), average)

    def step(
        self, state: DistillerState, batch: tuple[Tensor, Tensor]
    ) -> tuple[DistillerState, Metrics]:
        """Lines 3 to 10 of Algorithm 1: one outer step on a minibatch of real data.

        An outer step whose loss or gradient is not finite is rejected: the state moves on
        to the next outer step with its distilled data unchanged.
        """
        config, t = self.config, state.outer_step
        losses, gradient = self.gradient(state, batch)
        norm = torch.linalg.vector_norm(
            torch.stack([torch.linalg.vector_norm(g.double()) for g in gradient.values()])
        )
        loss, lr = losses.mean(), config.outer_lr_at(t)
        each = {"raw_rates": lr * (config.rates_lr or config.outer_lr) / config.outer_lr}
        parameters, moments = adam(state.parameters, gradient, state.adam, lr, config.betas, each)
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

    def gradient(
        self, state: DistillerState, batch: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Lines 4 to 9: the losses (J,) after all updates, and the gradient of their mean."""
        inputs, labels = batch
        config, t = self.config, state.outer_step
        numbers = range(t * self.networks, (t + 1) * self.networks)
        mine = self.team.share(numbers)
        theta0 = self.initialization.sample(
            self.network, networks_for(config.seed, "network", mine)
        )

        groups = self.engine.groups(len(mine))
        threads = self.engine.threads // max(1, groups.workers)
        steps = steps_through(self.split.body, state.current) if self.split else state.current

        def outer_loss(weights: Weights) -> Tensor:
            return self._outer_losses(weights, inputs, labels, threads)

        def group(networks: range, _: object) -> tuple[Tensor, dict[str, Tensor]]:
            chosen = {n: w[networks.start : networks.stop] for n, w in theta0.items()}
            losses, by_step = self.adjoint(
                self.update,
                self.rule.start(chosen),
                steps.for_each(len(networks)),
                outer_loss,
                stream(config.seed, "window", t),
            )
            return losses, self._mean(by_step, state)

        losses, gradient = _mean(groups.each(group))
        return self.team.mean(numbers, losses, gradient)

    def _outer_losses(
        self, weights: Weights, inputs: Tensor, labels: Tensor, threads: int
    ) -> Tensor:
        """The losses (J,) on real data; in parts, where they are means and memory asks for it."""
        loss, images = self.objective.outer_loss, self.config.micro_batch
        if not self.objective.is_mean:
            return self.engine.losses(weights, inputs, labels, loss)
        if images and not self.engine.stacked:  # which takes parts of its own accord

            def losses(weights: Weights, inputs: Tensor, labels: Tensor) -> Tensor:
                return self.engine.losses(weights, inputs, labels, loss)

            return losses_in_parts(losses, weights, inputs, labels, images)
        return self.engine.mean_losses(weights, inputs, labels, loss, threads)

    def _to_images(self, v: Tensor, images: Tensor) -> Tensor:
        """The gradient of images (J, steps, images, …), from that of what enters the unroll."""
        if self.split is None:
            return v
        pulled = self.split.body.pull_back(images.flatten(0, 1), v.flatten(1, 2))
        return pulled.unflatten(1, images.shape[:2])

    def _mean(self, by_step: Steps, state: DistillerState) -> dict[str, Tensor]:
        """The mean over networks of their gradients, each no longer than ``clip_norm``.

        Args:
            by_step: The gradient of the networks' mean loss, for each network's own steps.
            state: What is learned.
        """
        rates = by_step.learning_rates.permute(2, 0, 1)
        images = self._to_images(by_step.inputs.transpose(0, 1), state.current.inputs)
        found = {"inputs": images, "labels": by_step.labels.transpose(0, 1)}
        if "raw_rates" in state.parameters:  # dη̃/d raw of softplus is the sigmoid
            found["raw_rates"] = rates * state.parameters["raw_rates"].sigmoid()
        found = {name: len(rates) * found[name] for name in state.parameters}
        if self.config.clip_norm is not None:
            shares = self.config.clip_norm / _lengths(found.values()).clamp(self.config.clip_norm)
            found = {n: torch.einsum("j...,j->j...", g, shares.to(g)) for n, g in found.items()}
        return {name: g.mean(0) for name, g in found.items()}

    @cached_property
    def engine(self) -> Engine:
        """What computes the losses of the networks."""
        return Engine(self.split.head if self.split else self.network)

    @property
    def update(self) -> Update:
        """Line 6: θ ← θ − η̃ ∇ℓ(x̃, θ), for J networks side by side."""
        update = update_of(self.engine, self.objective.inner_loss, self.rule)
        images = self.config.micro_batch
        if images:
            return InParts(update.rule, update.loss, images)
        if self.compiled and self.compilable:
            return CompiledUpdate(update.rule, update.loss, functions=self.functions)
        return update

    @property
    def compilable(self) -> bool:
        """Whether there may be something to gain: not where the engine has its own ways."""
        on_cpu = self.network.device.type == "cpu"
        return on_cpu and self.engine.stacked is None and not self.config.micro_batch

    @cached_property
    def functions(self) -> Functions:
        """The compiled functions of the updates."""
        return Functions(self.engine.network, self.objective.inner_loss)


def _mean(groups: Sequence[tuple[Tensor, dict[str, Tensor]]]) -> tuple[Tensor, dict[str, Tensor]]:
    """All losses in order and the gradient of their mean, from groups of networks."""
    losses = torch.cat([each for each, _ in groups])
    shares = [len(each) / len(losses) for each, _ in groups]
    mean = {
        name: reduce(torch.add, [s * g[name] for s, (_, g) in zip(shares, groups, strict=True)])
        for name in groups[0][1]
    }
    return losses, mean


def _steps(tensors: Mapping[str, Tensor]) -> Steps:
    return Steps(tensors["inputs"], tensors["labels"], positive(tensors["raw_rates"]))


def _lengths(gradient: Iterable[Tensor]) -> Tensor:
    """The norms (J,) of the gradients of J networks, all tensors together."""
    norms = [torch.linalg.vector_norm(g.double().flatten(1), dim=1) for g in gradient]
    return torch.linalg.vector_norm(torch.stack(norms), dim=0)


def _finite(*tensors: Tensor) -> bool:
    return all(bool(torch.isfinite(tensor).all()) for tensor in tensors)
