"""What a distiller is made of, and what each of its outer steps draws."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import torch
from torch import Tensor

from ..errors import ConfigError
from .adjoint import Adjoint, BackGradient
from .along import Along
from .clipping import length
from .distilled import Steps
from .distiller_state import DistillerState
from .engine import Engine, PlainEngine
from .initialization import Initialization, networks_for
from .layout import inner_batches
from .network import Network, Weights
from .objective import Objective
from .parametrisation import Parametrisation, Plain
from .random import stream
from .settings import DistillerConfig, default_networks
from .update import GradientDescent, UpdateRule
from .variety import Pace, Variety
from .view import View, Viewed

Batch = tuple[Tensor, Tensor]
"""Real inputs and their labels."""


@dataclass(frozen=True)
class Ingredients:
    """The parts of a distiller.

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
        if self.adjoint.pool and self.parametrisation.of_images.negative_labels(self.objective):
            raise ConfigError(
                "Soft labels may become negative, and training on negative labels diverges, which "
                f"the {self.adjoint.name} adjoint does not see.",
                "Set labels to logits or clipped.",
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

    def scheduled(self, steps: Steps) -> Steps:
        """The same distilled data, with how updates draw their images."""
        inner = inner_batches(self.config, steps.inputs.shape[1])
        return replace(steps, inner=inner) if inner else steps

    def at(self, outer_step: int) -> Self:
        """The distiller of one outer step, with what varies."""
        if not self.variety:
            return self
        drawn = self.variety.draw(stream(self.config.seed, "variety", outer_step))
        made = replace(self, rule=drawn.rule or self.rule, pace=drawn.pace, variety=Variety())
        if drawn.other is None:
            return made
        return replace(made, network=drawn.other.network, own_engine=drawn.other, whole=None)

    def numbers_at(self, outer_step: int) -> range:
        """The numbers of the networks of an outer step."""
        return range(outer_step * self.networks, (outer_step + 1) * self.networks)

    def weights(self, purpose: str, numbers: Sequence[int]) -> Weights:
        """θ₀ of networks with some numbers."""
        generators = networks_for(self.config.seed, purpose, numbers)
        return self.initialization.sample(self.whole or self.network, generators)

    @cached_property
    def along(self) -> Along | None:
        """The networks that train along, where the adjoint wants some."""
        pool, updates = self.adjoint.pool, self.adjoint.updates
        if not pool:
            return None
        return Along(pool, updates, self.rule, lambda n: self.weights("network along", [n]))

    def pool_after(self, state: DistillerState) -> dict[str, Tensor]:
        """These networks after their updates on the distilled data of an outer step."""
        if self.along is None:
            return {}
        t, steps = state.outer_step, self.scheduled(self.parametrisation.steps(state.current))
        own = steps.for_networks(self.config.seed, "network along", [t])
        return self.along.advanced(state.pool, self.numbers_at(t), self.engine, own)

    def seen(self, outer_step: int, batch: Batch) -> tuple[Parametrisation, Batch]:
        """Distilled and real data as an outer step sees them: through the same view."""
        if self.view is None:
            return self.parametrisation, batch
        look = self.view.draw(stream(self.config.seed, "view", outer_step))
        return Viewed(self.parametrisation, look), (look(batch[0]), batch[1])

    def adjoint_at(self, outer_step: int, steps: Steps) -> Adjoint:
        """The adjoint of an outer step, with its window where it has one."""

        def norms() -> Tensor:
            return self._norms(steps, outer_step)

        window = stream(self.config.seed, "window", outer_step)
        return self.adjoint.placed(self.config.share_at(outer_step), norms, window)

    def _norms(self, steps: Steps, outer_step: int) -> Tensor:
        """The gradient norms (T,) of the updates of a network that is trained for this alone."""
        learner = self.rule.start(self.weights("window's network", [outer_step]))
        found: list[Tensor] = []
        with torch.no_grad():
            own = steps.for_networks(self.config.seed, "window's network", [outer_step])
            for step in own:
                g = self.engine.gradient(learner.weights, step)
                learner = self.rule.update(learner, g, step)
                found.append(length(g))
        return torch.stack(found)
