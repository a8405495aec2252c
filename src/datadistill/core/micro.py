"""Micro-batches: real and distilled images in parts, with the gradient of the whole.

Losses are means over images, so that an update, its vector-Jacobian product and the outer loss are
sums over parts. Each part's graph is gone before the next is made.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor

from ..errors import ModelError
from .distilled import Step
from .engine import Known
from .network import Network, Weights
from .update import Gradient, Learner, Update, gradient

Losses = Callable[[Weights, Tensor, Tensor], Tensor]
"""(θ, inputs, labels) → the mean losses (J,) of J networks."""


@dataclass(frozen=True)
class InParts(Update):
    """An update whose step is computed in parts of so many images."""

    images: int = 1

    def __call__(self, learner: Learner, step: Step) -> Learner:
        """Makes one update, with g = Σ_p (n_p / N) ∇ℓ(x̃_p, θ); it keeps no graph."""
        with torch.no_grad():
            g = _sum(
                gradient(lambda w, p=part, s=share: s * self.loss(w, p).sum(), learner.weights)
                for share, part in self._parts(step)
            )

        def linear(weights: Weights, _: Step) -> Tensor:
            """A loss whose gradient is g, whatever the weights are."""
            return torch.stack([(w * g[name]).sum() for name, w in weights.items()])

        return self.rule(linear, learner, step)

    def record(self, learner: Learner, step: Step) -> Gradient:
        """What is needed to pull back; the parts' gradients are computed then, one by one."""
        return Gradient(learner, learner.weights, step, [])

    def pull_back(self, g: Gradient, v: list[Tensor]) -> tuple[list[Tensor], Step]:
        """(∂L/∂θ_t, ∂L/∂step): each part adds its own to v."""
        learner, step = g.learner, g.step
        count, of_steps = len(learner.weights), list[Step]()
        of_weights, of_velocity = v[:count], v[count:]
        for share, part in self._parts(step):

            def loss(weights: Weights, step: Step, share: float = share) -> Tensor:
                return share * self.loss(weights, step)

            back, own = self.rule.pull_back(self.rule.record(loss, learner, part), v)
            moves = zip(of_weights, back[:count], v[:count], strict=True)
            of_weights, of_velocity = [t + (b - one) for t, b, one in moves], back[count:]
            of_steps.append(own)
            # Momentum moves the weights once, whatever the number of parts.
            learner = Learner(learner.weights, {n: 0 * m for n, m in learner.velocity.items()})
        axis = step.learning_rate.ndim
        return [*of_weights, *of_velocity], Step(
            torch.cat([own.inputs for own in of_steps], axis),
            torch.cat([own.labels for own in of_steps], axis),
            torch.stack([own.learning_rate for own in of_steps]).sum(0),
        )

    def _parts(self, step: Step) -> Iterator[tuple[float, Step]]:
        """Parts of a step, each with its share of the images."""
        axis = step.learning_rate.ndim  # after the axis of networks, if each has a step of its own
        inputs, labels = step.inputs.split(self.images, axis), step.labels.split(self.images, axis)
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

    return Known.apply(both, *weights.values())  # pyright: ignore[reportReturnType]


def check_no_mixing(network: Network) -> None:
    """Refuses a network in which an image's output depends on the images beside it."""
    weights, example = network.stack([network.weights]), network.example
    with torch.no_grad():
        together = network(weights, example)
        try:
            alone = torch.cat([network(weights, one) for one in example.split(1)], 1)
        except Exception:  # batch normalisation refuses a single image
            alone = torch.full_like(together, torch.nan)
    tolerance = torch.finfo(network.dtype).eps ** 0.5 * (1 + together.abs().max())
    if not bool((alone - together).abs().max() <= tolerance):
        raise ModelError(
            f"{network.name} mixes the images of a batch, as batch normalisation does.",
            "Leave micro_batch out: parts of a batch would give another gradient.",
        )


def _sum(trees: Iterator[Weights]) -> Weights:
    """Adds trees of tensors up as they come."""
    return reduce(lambda total, more: {n: t + more[n] for n, t in total.items()}, trees)
