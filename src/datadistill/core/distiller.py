"""The distiller: Algorithm 1, with several steps and epochs.

``init`` makes a state, ``step`` turns a state and a minibatch of real data into the next
state. Neither has side effects.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from .clipping import clipped, length, mean_clipped
from .distilled import Steps, noise
from .distiller_state import DistillerState, Metrics
from .engine import Engine, Found, Tree
from .ingredients import Batch, Ingredients
from .layout import start_labels
from .network import Weights
from .optimizer import adam, adam_init
from .parametrisation import LABELS, RATES, RULE
from .random import stream
from .settings import DistillerConfig


@dataclass(frozen=True)
class Distiller(Ingredients):
    """Learns distilled data for a network, an initialization and an objective."""

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
        pool = self.along.start() if self.along else {}
        return DistillerState(0, *parameters, adam_init(parameters.learned), average, pool=pool)

    def step(self, state: DistillerState, batch: Batch) -> tuple[DistillerState, Metrics]:
        """Lines 4 to 9: one outer step on a minibatch of real data, which line 3 has drawn.

        An outer step whose loss or gradient is not finite is rejected: the state moves on
        to the next outer step with its distilled data unchanged.
        """
        config, t = self.config, state.outer_step
        losses, gradient = self.at(t).gradient(state, batch)
        loss, norm = losses.mean(), length(gradient)
        gradient, running = clipped(gradient, float(norm), config.clip_factor, state.norm)
        # Line 9: x̃ ← x̃ − α ∇x̃ L, η̃ ← η̃ − α ∇η̃ L, by Adam.
        lr = config.outer_lr_at(t)
        own = own_rates(config, lr)
        parameters, moments = adam(state.parameters, gradient, state.adam, lr, config.betas, own)
        parameters = self.parametrisation.project(parameters)
        # Finite gradients may still overflow in Adam's squares or with a huge learning rate.
        accepted = _finite(loss, norm, *parameters.values(), *moments.second.values())
        metrics = Metrics(float(loss), float(norm), lr, accepted)
        if not accepted:
            return state.after_rejection(), metrics
        old = config.averaging_at(moments.count)
        return state.after(parameters, moments, old, self.pool_after(state), running), metrics

    def gradient(self, state: DistillerState, batch: Batch) -> Found:
        """Lines 4 to 9: the losses (J,) after all updates, and the gradient of their mean."""
        config, t, parameters = self.config, state.outer_step, state.current
        parametrisation, (inputs, labels) = self.seen(t, batch)
        steps = self.scheduled(parametrisation.steps(parameters))
        steps = replace(steps, learning_rates=self.pace.rates(steps.learning_rates))
        adjoint = self.adjoint_at(t, steps)

        def sample(numbers: range) -> Weights:  # line 4: θ₀⁽ʲ⁾ ~ p(θ₀)
            if self.along:
                return self.along.weights(state.pool, numbers)
            return self.weights("network", numbers)

        def learn(engine: Engine, theta0: Weights, numbers: range) -> tuple[Tensor, Steps]:
            # Lines 5 to 8, for some networks: ℒ⁽ʲ⁾ = ℓ(x, θ_T⁽ʲ⁾), and ∇ of their mean.
            own = steps.for_networks(config.seed, "network", numbers)
            return adjoint(
                self.rule,
                engine,
                self.rule.start(theta0),
                own if own.inner else own.for_each(len(numbers)),
                lambda weights: engine.outer_losses(weights, inputs, labels),
                stream(config.seed, "window", t),
            )

        def combine(gradient: Steps) -> Tree:
            # Line 9: ∇ Σⱼ ℒ⁽ʲ⁾, here of the mean over networks, of what is learned.
            rates = self.pace.slope * gradient.learning_rates
            gradient = replace(gradient, learning_rates=rates)
            each = parametrisation.pull_back_each(parameters, gradient)
            networks = rates.shape[2]
            return mean_clipped({n: networks * g for n, g in each.items()}, config.clip_norm)

        taped = adjoint.taped(len(steps.schedule))
        return self.engine.mean_over(self.numbers_at(t), taped, sample, learn, combine)

    def distilled(self, state: DistillerState) -> Steps:
        """The distilled data as they stand."""
        return self.scheduled(self.parametrisation.steps(state.kept))


def own_rates(config: DistillerConfig, lr: float) -> dict[str, float]:
    """Adam's learning rates where they are not ``lr``, in the same proportion throughout a run."""
    own = {RATES: config.rates_lr, RULE: config.rates_lr, LABELS: config.labels_lr}
    return {name: lr * (one or config.outer_lr) / config.outer_lr for name, one in own.items()}


def _finite(*tensors: Tensor) -> bool:
    return all(bool(torch.isfinite(tensor).all()) for tensor in tensors)
