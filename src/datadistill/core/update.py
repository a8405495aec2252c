"""Update rules: how a learner changes its weights on one step of distilled data."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from ..progress import Progress, ProgressCallback, silent
from .distilled import Step, Steps
from .engine import Engine, Room
from .network import Loss, Network, Weights


class Learner(NamedTuple):
    """J networks in training: their weights, and what the update rule carries along."""

    weights: Weights
    velocity: Weights

    def leaves(self) -> list[Tensor]:
        """All tensors in a fixed order."""
        return [*self.weights.values(), *self.velocity.values()]

    def rebuild(self, leaves: list[Tensor]) -> "Learner":
        """The inverse of :meth:`leaves`, with this learner's names."""
        count = len(self.weights)
        return Learner(
            dict(zip(self.weights, leaves[:count], strict=True)),
            dict(zip(self.velocity, leaves[count:], strict=True)),
        )


StepLoss = Callable[[Weights, Step], Tensor]
"""ℓ(x̃, θ): the losses (J,) of J networks on one step."""


class Gradient(NamedTuple):
    """g = ∇ℓ(x̃_t, θ_t) with its graph: what an update is made with, and pulled back through.

    Attributes:
        learner: θ_t, and the velocity before the update.
        weights: θ_t as leaves of the graph.
        step: x̃_t as a leaf of it, and η̃_t.
        values: g, in the order of the weights.
    """

    learner: Learner
    weights: Weights
    step: Step
    values: list[Tensor]


class Products(NamedTuple):
    """What a pull-back needs of g = ∇ℓ(x̃, θ) and some u.

    Attributes:
        values: g, without its graph.
        weights: ∂⟨u, g⟩/∂θ.
        inputs: ∂⟨u, g⟩/∂x̃.
        labels: The same of the labels; zeros if they have no gradient.
    """

    values: list[Tensor]
    weights: list[Tensor]
    inputs: Tensor
    labels: Tensor


def through_graph(g: Gradient, u: list[Tensor]) -> Products:
    """The products by the graph of a recorded gradient, which is over afterwards."""
    leaves = [*g.weights.values(), g.step.inputs, g.step.labels]
    *back, inputs, labels = gradients(g.values, leaves, u)
    return Products([one.detach() for one in g.values], back, inputs, labels)


@dataclass(frozen=True)
class GradientDescent:
    """θ_{t+1} = θ_t − η̃_t ∇ℓ(x̃_t, θ_t), with heavy-ball momentum if asked for.

    Under ``torch.no_grad()`` an update keeps no graph; otherwise it is itself
    differentiable with respect to the learner and the step.

    Attributes:
        momentum: μ of v ← μ v + ∇ℓ, θ ← θ − η̃ v; 0 is plain gradient descent.
    """

    momentum: float = 0.0

    def start(self, weights: Weights) -> Learner:
        """Returns a learner at its initial weights θ₀."""
        if not self.momentum:
            return Learner(weights, {})
        return Learner(weights, {name: torch.zeros_like(w) for name, w in weights.items()})

    def __call__(self, loss: StepLoss, learner: Learner, step: Step) -> Learner:
        """Makes one update."""
        found = gradient(lambda weights: loss(weights, step).sum(), learner.weights)
        return self.moved(learner, step, found)

    def record(self, loss: StepLoss, learner: Learner, step: Step) -> Gradient:
        """The gradient of one update, to be pulled back through."""
        weights = {name: leaf(w) for name, w in learner.weights.items()}
        step = Step(leaf(step.inputs), leaf(step.labels), step.learning_rate)
        with torch.enable_grad():
            found = gradient(lambda weights: loss(weights, step).sum(), weights)
        return Gradient(learner, weights, step, [*found.values()])

    def after(self, g: Gradient) -> Learner:
        """The learner after a recorded update."""
        found = {name: one.detach() for name, one in zip(g.weights, g.values, strict=True)}
        return self.moved(g.learner, g.step, found)

    def pull_back(
        self,
        g: Gradient,
        v: list[Tensor],
        through: Callable[[Gradient, list[Tensor]], Products] = through_graph,
    ) -> tuple[list[Tensor], Step]:
        """The vector-Jacobian product of one update.

        With g = ∇ℓ(x̃_t, θ_t), the update θ_{t+1} = θ_t − η̃_t g turns v = ∂L/∂θ_{t+1} into
        v + ∂⟨u, g⟩/∂θ_t, where u = −η̃_t v; the step gets ∂⟨u, g⟩/∂x̃_t, and its rate −⟨v, g⟩.

        Args:
            g: The recorded gradient, whose graph is over afterwards.
            v: The gradient with respect to the learner after the update.
            through: How the products of g with u are had.

        Returns:
            The gradients with respect to the learner before the update, and to the step.
        """
        count, eta = len(g.weights), g.step.learning_rate
        v, of_velocity = v[:count], v[count:]
        u = [-_rate(eta, one) * one for one in v]
        if self.momentum:
            u = [one + own for one, own in zip(u, of_velocity, strict=True)]
        moved, back, inputs, labels = through(g, u)
        if self.momentum:
            before = g.learner.velocity.values()
            moved = [self.momentum * m + one for m, one in zip(before, moved, strict=True)]
            of_velocity = [self.momentum * one for one in u]
        pairs = ((one.flatten(1), m.flatten(1)) for one, m in zip(v, moved, strict=True))
        products = torch.stack([torch.linalg.vecdot(*pair).to(eta.dtype) for pair in pairs])
        rate = -products.sum(0) if eta.ndim else -products.sum()
        v = [one + more for one, more in zip(v, back, strict=True)]
        return [*v, *of_velocity], Step(inputs, labels, rate)

    def moved(self, learner: Learner, step: Step, direction: Weights) -> Learner:
        """The learner after an update along ∇ℓ."""
        if self.momentum:
            direction = {n: self.momentum * learner.velocity[n] + g for n, g in direction.items()}
        weights = {
            name: w - _rate(step.learning_rate, w) * direction[name]
            for name, w in learner.weights.items()
        }
        return Learner(weights, direction if self.momentum else {})


def gradient(function: Callable[[Weights], Tensor], weights: Weights) -> Weights:
    """∇ of a scalar function of the weights; differentiable again if gradients are enabled.

    The networks do not touch each other, so the gradient of the sum of their losses holds
    each network's own gradient.
    """
    create_graph = torch.is_grad_enabled()
    with torch.enable_grad():
        weights = {
            name: w if w.requires_grad else w.detach().requires_grad_()
            for name, w in weights.items()
        }
        gradients = torch.autograd.grad(
            function(weights),
            list(weights.values()),
            create_graph=create_graph,
            materialize_grads=True,
        )
    return dict(zip(weights, gradients, strict=True))


@dataclass(frozen=True)
class Update:
    """θ_t, step → θ_{t+1}, and back: an update rule with the loss it descends.

    Attributes:
        rule: The update rule.
        loss: ℓ.
        room: Memory for gradients that are recorded on the way forward; without, none are.
    """

    rule: GradientDescent
    loss: StepLoss
    room: Room | None = field(default=None, kw_only=True)

    def __call__(self, learner: Learner, step: Step) -> Learner:
        """Makes one update."""
        return self.rule(self.loss, learner, step)

    def record(self, learner: Learner, step: Step) -> Gradient:
        """The gradient of one update, to be pulled back through."""
        return self.rule.record(self.loss, learner, step)

    def graphs(self, learner: Learner, step: Step, updates: int) -> int:
        """Of how many updates recorded gradients may be kept at a time: all, or at least one."""
        room, least = self.room, sum(own.nbytes for own in learner.weights.values())
        if room is None or least > max(room.window, room.bytes / updates):
            return 1
        shape = (*(own.shape for own in learner.leaves()), step.inputs.shape)
        if shape not in room.sizes:
            room.sizes[shape] = self._weigh(learner, step)
        size = room.sizes[shape]
        return updates if updates * size <= room.bytes else max(1, room.window // size)

    def _weigh(self, learner: Learner, step: Step) -> int:
        """The bytes that a recorded gradient keeps beside the learner and the step."""
        kept: dict[int, int] = {}

        def pack(saved: Tensor) -> Tensor:
            storage = saved.untyped_storage()
            kept[storage.data_ptr()] = storage.nbytes()
            return saved

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved):
            g = self.record(learner, step)
        kept |= {one.untyped_storage().data_ptr(): one.nbytes for one in g.values}
        there = {one.untyped_storage().data_ptr() for one in (*learner.leaves(), step.inputs)}
        # A graph whose saved tensors went through Python holds itself alive until it is used.
        self.pull_back(g, [torch.zeros_like(own) for own in learner.leaves()])
        return sum(size for place, size in kept.items() if place not in there)

    def after(self, g: Gradient) -> Learner:
        """The learner after a recorded update."""
        return self.rule.after(g)

    def pull_back(self, g: Gradient, v: list[Tensor]) -> tuple[list[Tensor], Step]:
        """(∂L/∂θ_t, ∂L/∂step) from v = ∂L/∂θ_{t+1}."""
        return self.rule.pull_back(g, v)


def update_of(network: Network | Engine, loss: Loss, rule: GradientDescent) -> Update:
    """The update that learners of this architecture make with a rule and an inner loss."""

    def step_loss(weights: Weights, step: Step) -> Tensor:
        losses = network.own_losses if step.learning_rate.ndim else network.losses
        return losses(weights, step.inputs, step.labels, loss)

    return Update(rule, step_loss, room=network.room if isinstance(network, Engine) else None)


def _rate(rate: Tensor, w: Tensor) -> Tensor:
    """A learning rate, or one for each network, as a factor of a weight's gradient (J, …)."""
    return rate.to(w.dtype).reshape(-1, *[1] * (w.ndim - 1)) if rate.ndim else rate.to(w.dtype)


def leaf(tensor: Tensor) -> Tensor:
    """A tensor of the same values from which gradients are asked, if it can have any."""
    return tensor.detach().requires_grad_(tensor.is_floating_point())


def gradients(
    outputs: list[Tensor], leaves: list[Tensor], v: list[Tensor] | None = None
) -> list[Tensor]:
    """Gradients with respect to ``leaves``; zeros for those that have none."""
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    v = [torch.ones_like(one) for one in outputs] if v is None else v
    some = [(one, own) for one, own in zip(outputs, v, strict=True) if one.requires_grad]
    if not some:
        return [torch.zeros_like(leaf) for leaf in leaves]
    made, of = zip(*some, strict=True)
    found = iter(torch.autograd.grad(made, wanted, of, materialize_grads=True))
    return [next(found) if leaf.requires_grad else torch.zeros_like(leaf) for leaf in leaves]


def train(
    update: Update, learner: Learner, steps: Steps, progress: ProgressCallback = silent
) -> Learner:
    """Makes all updates of the schedule, θ₀ → θ_T, keeping no graph."""
    total = len(steps.schedule)
    with torch.no_grad():
        for t, step in enumerate(steps):
            learner = update(learner, step)
            progress(Progress("training", t + 1, total))
    return learner
