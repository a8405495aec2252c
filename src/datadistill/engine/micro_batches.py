"""Micro-batches: real and distilled images in parts, with the gradient of the whole.

Losses are means over images, so that a gradient, its products and the outer loss are sums over
parts. Each part's graph is gone before the next is made.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, reduce

import torch
from torch import Tensor

from ..core.distilled import Step
from ..core.engine import Products, Recorded
from ..core.gradients import gradient
from ..core.network import Network, Weights
from ..core.objective import Objective
from ..errors import ConfigError, ModelError
from .precomputed import PrecomputedGradient

StepLosses = Callable[[Weights, Step], Tensor]
"""ℓ(x̃, θ): the mean losses (J,) of J networks on one step."""

Losses = Callable[[Weights, Tensor, Tensor], Tensor]
"""(θ, inputs, labels) → the mean losses (J,) of J networks."""


class InParts:
    """g = Σ_p (n_p / N) ∇ℓ(x̃_p, θ): a recorded gradient whose step is computed in parts.

    Args:
        losses: ℓ.
        weights: θ.
        step: x̃, its labels and its learning rate.
        images: How many images a part has.
    """

    def __init__(self, losses: StepLosses, weights: Weights, step: Step, images: int) -> None:
        self._losses, self._weights, self._step, self._images = losses, weights, step, images
        # After the axis of networks, if each has a step of its own.
        self._axis = step.learning_rate.ndim

    @property
    def values(self) -> Weights:
        """g, which has no graph."""
        return self._values

    @cached_property
    def _values(self) -> Weights:
        tensors = (*self._weights.values(), self._step.inputs, self._step.labels)
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
            raise ConfigError(
                "micro_batch cannot be combined with an adjoint that keeps the graphs of updates.",
                "Choose the back-gradient adjoint, or leave micro_batch out.",
            )
        with torch.no_grad():
            return _sum(self._gradient(share)(self._weights, p) for share, p in self._parts())

    def products(self, u: Weights) -> Products:
        """The products of g with u: each part adds its own."""
        found = [
            Recorded(self._gradient(share), self._weights, part).products(u)
            for share, part in self._parts()
        ]
        return Products(
            _sum(one.values for one in found),
            _sum(one.weights for one in found),
            torch.cat([one.inputs for one in found], self._axis),
            torch.cat([one.labels for one in found], self._axis),
        )

    def _gradient(self, share: float) -> Callable[[Weights, Step], Weights]:
        """(θ, x̃_p) → (n_p / N) ∇ℓ(x̃_p, θ)."""

        def function(weights: Weights, part: Step) -> Weights:
            return gradient(lambda theta: share * self._losses(theta, part).sum(), weights)

        return function

    def _parts(self) -> Iterator[tuple[float, Step]]:
        """Parts of the step, each with its share of the images."""
        step, axis = self._step, self._axis
        inputs, labels = (t.split(self._images, axis) for t in (step.inputs, step.labels))
        for part in zip(inputs, labels, strict=True):
            share = part[0].shape[axis] / step.inputs.shape[axis]
            yield share, Step(*part, step.learning_rate)


def losses_in_parts(
    losses: Losses, weights: Weights, inputs: Tensor, labels: Tensor, images: int
) -> Tensor:
    """The mean losses (J,) on real images that are computed in parts; once differentiable."""

    def both(leaves: Sequence[Tensor]) -> list[Tensor]:
        """The losses and their gradients."""

        def part(x: Tensor, y: Tensor) -> dict[str, Tensor]:
            named = zip(weights, leaves, strict=True)
            own = {name: leaf.detach().requires_grad_() for name, leaf in named}
            with torch.enable_grad():
                each = losses(own, x, y) * (len(y) / len(labels))
                g = torch.autograd.grad(each.sum(), [*own.values()], materialize_grads=True)
            return {"": each.detach(), **dict(zip(own, g, strict=True))}

        pairs = zip(inputs.split(images), labels.split(images), strict=True)
        return [*_sum(part(*pair) for pair in pairs).values()]

    return PrecomputedGradient.apply(both, *weights.values())  # pyright: ignore[reportReturnType]


def check_no_mixing(network: Network) -> None:
    """Refuses a network in which an image's output depends on the images beside it."""
    if mixes_examples(network):
        raise ModelError(
            f"{network.name} mixes the images of a batch, as batch normalisation does.",
            "Leave micro_batch out.",
        )


def mixes_examples(network: Network) -> bool:
    """Whether an image's output depends on the images beside it."""
    weights, example = network.stack([network.weights]), network.example
    with torch.no_grad():
        together = network(weights, example)
        try:
            alone = torch.cat([network(weights, one) for one in example.split(1)], 1)
        except Exception:  # batch normalisation refuses a single image
            alone = torch.full_like(together, torch.nan)
    tolerance = torch.finfo(network.dtype).eps ** 0.5 * (1 + together.abs().max())
    return not bool((alone - together).abs().max() <= tolerance)


def check_inner_mean(objective: Objective) -> None:
    """Refuses an inner loss of which parts of a step do not add up to the whole."""
    if not objective.inner_is_mean:
        raise ConfigError(
            f"micro_batch needs an inner loss that is a mean over images; {objective.text} does "
            "not say that it is.",
            "Write is_mean = True in its class if it is, or leave micro_batch out.",
        )


def _sum(trees: Iterator[Weights]) -> Weights:
    """Adds trees of tensors up as they come."""
    return reduce(lambda total, more: {n: t + more[n] for n, t in total.items()}, trees)
