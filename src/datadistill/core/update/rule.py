"""Update rules: how a learner changes its weights on one step of distilled data."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ..distilled import Step
from ..engine import Gradient
from ..gradients import leaf, leaves, products
from ..learner import Learner
from ..network import Weights
from ..seam import Seam


class UpdateRule(Seam, seam="update rule"):
    """θ_t, ∇ℓ(x̃_t, θ_t), η̃_t → θ_{t+1}.

    An implementation writes :meth:`update`, a differentiable function of tensors that changes
    nothing, and :meth:`start` if it carries something along. :meth:`pull_back` is derived, unless
    the same class writes it.
    """

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "update" in vars(cls) and "pull_back" not in vars(cls):
            cls.pull_back = UpdateRule.pull_back  # never that of another update

    @property
    def learnable(self) -> tuple[str, ...]:
        """The fields that can be learned along with the distilled data: shares, from 0 to 1."""
        return ()

    def share(self, name: str) -> float:
        """One of these fields."""
        return getattr(self, name)

    def with_shares(self, values: Mapping[str, Any]) -> "UpdateRule":
        """The same with other values of these fields: numbers, or (J,) tensors."""
        this: Any = self
        return replace(this, **values)

    @property
    def coefficients(self) -> Tensor | None:
        """What is learned of the rule, as it starts: (K,); None if nothing is."""
        return None

    def settled(self, coefficients: Tensor | None) -> "UpdateRule":
        """The rule as an artefact has it, with what was learned of it as numbers."""
        return self

    def start(self, weights: Weights) -> Learner:
        """A learner at its initial weights θ₀."""
        return Learner(weights)

    @abstractmethod
    def update(self, learner: Learner, gradient: Weights, step: Step) -> Learner:
        """The learner after an update along a gradient.

        Args:
            learner: θ_t, and what :meth:`start` or the last update put into its memory.
            gradient: ∇ℓ(x̃_t, θ_t), with an axis of networks in front as all tensors here.
            step: x̃_t, its labels and its learning rate; see :meth:`Step.rate_for`.
        """

    def pull_back(
        self, learner: Learner, g: Gradient, step: Step, v: Learner
    ) -> tuple[Learner, Step]:
        """The vector-Jacobian product of one update: derived from :meth:`update` by autograd.

        With f the update and g = ∇ℓ(x̃_t, θ_t), θ_{t+1} = f(θ_t, g, η̃_t). So v = ∂L/∂θ_{t+1} becomes
        ⟨v, ∂f/∂θ_t⟩ + ∂⟨u, g⟩/∂θ_t with u = ⟨v, ∂f/∂g⟩; the step gets ∂⟨u, g⟩/∂x̃_t, and its rate
        ⟨v, ∂f/∂η̃_t⟩.

        Args:
            learner: The learner before the update.
            g: The gradient it was made with.
            step: What it was made on.
            v: The gradient with respect to the learner after the update.

        Returns:
            The gradients with respect to the learner before the update, and to the step.
        """
        before = learner.rebuild([leaf(own) for own in learner.leaves()])
        along, eta = leaves(g.values), leaf(step.learning_rate)
        own = None if step.coefficients is None else leaf(step.coefficients)
        with torch.enable_grad():
            after = self.update(before, along, step._replace(learning_rate=eta, coefficients=own))
        of = [*before.leaves(), *along.values(), eta, eta if own is None else own]
        *found, rate, coefficients = products(after.leaves(), of, v.leaves())
        count = len(found) - len(along)
        back, u = learner.rebuild(found[:count]), dict(zip(along, found[count:], strict=True))
        through = g.products(u)
        weights = {name: w + through.weights[name] for name, w in back.weights.items()}
        gradient = Step(through.inputs, through.labels, rate, own if own is None else coefficients)
        return Learner(weights, back.memory), gradient


def moved(weights: Weights, direction: Weights, step: Step) -> Weights:
    """θ − η̃ · direction."""
    kinds = {(w.ndim, w.dtype): w for w in weights.values()}
    rates = {kind: step.rate_for(w) for kind, w in kinds.items()}
    # In one pass: for large weights, time goes into reading and writing them.
    return {
        name: torch.addcmul(w, rates[w.ndim, w.dtype], direction[name], value=-1)
        for name, w in weights.items()
    }


def rate_gradient(v: Weights, direction: Weights, step: Step) -> Tensor:
    """−⟨v, direction⟩, of each network if each has a rate of its own."""
    eta = step.learning_rate
    each = torch.stack([_dots(one, direction[name]).to(eta.dtype) for name, one in v.items()])
    return -each.sum(0) if eta.ndim else -each.sum()


def _dots(one: Tensor, other: Tensor) -> Tensor:
    """The product (J,) of two tensors (J, …), network by network."""
    if len(one) == 1:  # of which torch stores no products before it sums them up
        return torch.dot(one.reshape(-1), other.reshape(-1)).unsqueeze(0)
    # One row a network, even of a weight that is a single number.
    return torch.linalg.vecdot(one.reshape(len(one), -1), other.reshape(len(one), -1))
