"""The ridge head: the last layer is solved in closed form on the features of distilled images.

Nothing is unrolled: the gradient goes through the solution of a ridge regression and through the
features of the distilled images (FRePo, Zhou et al. 2022). Networks come from a small pool that
trains along on the distilled data.
"""

from dataclasses import dataclass, replace
from threading import Lock
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ...errors import ConfigError, ModelError
from ...given import typed
from ..distilled import Steps, zeros_like
from ..engine import Engine
from ..gradients import leaf, products
from ..learner import Learner
from ..network import Network, Weights
from ..update.rule import UpdateRule
from .adjoint import Adjoint, OuterLoss
from .back_gradient import outer_gradient

_LENT = Lock()  # a Network lends its module the weights for each pass, so it serves one thread


@typed
@dataclass(frozen=True)
class RidgeHead(Adjoint, name="ridge-head"):
    """Differentiates through W = Φᵀ (K + λ tr(K)/n · I)⁻¹ ỹ, with K = Φ Φᵀ of n distilled images.

    The learning rates get no gradient.

    Attributes:
        ridge: λ. With about as many images as features, a small one lets W fit the images at the
            price of all else.
        scale: Factor of the outputs, so that classes as 0 and 1 become logits.
        pool: How many networks train along.
        updates: After how many updates each of them starts anew.
    """

    ridge: float = 0.01
    scale: float = 10.0
    pool: int = 10
    updates: int = 100

    def __post_init__(self) -> None:
        for name in ("ridge", "scale", "pool", "updates"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} is {getattr(self, name)}.", f"Set {name} above 0.")

    def taped(self, updates: int) -> int:
        return 0

    def __call__(
        self,
        rule: UpdateRule,
        engine: Engine,
        learner: Learner,
        steps: Steps,
        outer_loss: OuterLoss,
        generator: torch.Generator,
    ) -> tuple[Tensor, Steps]:
        head, weights = Head.of(engine.network), learner.weights
        inputs = leaf(steps.inputs.transpose(0, 1).flatten(1, 2))  # (J, steps × images, …)
        labels = leaf(steps.labels.transpose(0, 1).flatten(1, 2))
        with torch.enable_grad():
            targets = _targets(engine, labels)
            solved = self.solve(head.features(engine.network, weights, inputs), targets)
            if engine.objective.has_classes:
                solved = self.scale * solved
        after = {**weights, **head.weights(solved.detach(), weights)}
        losses, v = outer_gradient(outer_loss, Learner(after))
        found = products([solved], [inputs, labels], [head.joined(v.weights)])
        count = steps.inputs.shape[0]
        of_inputs, of_labels = (g.unflatten(1, (count, -1)).transpose(0, 1) for g in found)
        return losses, replace(zeros_like(steps), inputs=of_inputs, labels=of_labels)

    def solve(self, features: Tensor, targets: Tensor) -> Tensor:
        """(J, outputs, features): the last layer, from features (J, n, features).

        In float64: the kernel of similar images is nearly singular.
        """
        phi = features.double()
        kernel = phi @ phi.mT
        images = kernel.shape[-1]
        trace = kernel.diagonal(dim1=1, dim2=2).sum(1)
        eye = torch.eye(images, dtype=kernel.dtype, device=kernel.device)
        regular = kernel + (self.ridge * trace / images)[:, None, None] * eye
        alpha = torch.linalg.solve(regular, targets.double())
        return alpha.mT @ phi


class Head(NamedTuple):
    """The last layer of a network: outputs = W φ + b.

    Attributes:
        weight: The name of W.
        bias: The name of b, if it has one.
    """

    weight: str
    bias: str | None

    @classmethod
    def of(cls, network: Network) -> "Head":
        """Finds it, and refuses a network whose outputs are not those of a linear layer."""
        outputs = network.outputs.numel()
        for name, w in reversed(network.weights.items()):
            if w.ndim == 2 and len(w) == outputs and name.endswith("weight"):
                bias = name.removesuffix("weight") + "bias"
                found = cls(name, bias if bias in network.weights else None)
                if found._is_last(network):
                    return found
        raise ModelError(
            f"The last layer of {network.name} is not nn.Linear, which the ridge-head adjoint "
            "solves for.",
            "Choose the truncated or back-gradient adjoint.",
        )

    def features(self, network: Network, weights: Weights, inputs: Tensor) -> Tensor:
        """Φ (J, n, features) of J networks, each for inputs (J, n, …) of its own.

        Where the layer has a bias, the last feature is 1.
        """
        width = weights[self.weight].shape[-1]
        eye = torch.eye(width).to(weights[self.weight]).expand(len(inputs), width, width)
        through = {**weights, self.weight: eye}  # W = 1, b = 0: the outputs are the features
        if self.bias:
            through[self.bias] = eye.new_zeros(len(inputs), width)
        with _LENT:
            found = network.own_losses(through, inputs, inputs, lambda outputs, _: outputs)
        return F.pad(found, (0, 1), value=1.0) if self.bias else found

    def weights(self, solved: Tensor, like: Weights) -> Weights:
        """The weights of the last layer, from (J, outputs, features)."""
        if self.bias is None:
            return {self.weight: solved.to(like[self.weight])}
        bias = solved[..., -1].to(like[self.bias])
        return {self.weight: solved[..., :-1].to(like[self.weight]), self.bias: bias}

    def joined(self, v: Weights) -> Tensor:
        """The inverse of :meth:`weights`, for a gradient."""
        parts = [v[self.weight], *([v[self.bias][..., None]] if self.bias else [])]
        return torch.cat(parts, -1).double()

    def _is_last(self, network: Network) -> bool:
        weights, inputs = network.stack([network.weights]), network.example
        try:
            with torch.no_grad():
                phi = self.features(network, weights, inputs[None])
                with _LENT:
                    expected = network(weights, inputs).flatten(2).double()
            found = phi.double() @ self.joined(weights).mT
        except RuntimeError:  # W is not that of a linear layer at the end
            return False
        return found.shape == expected.shape and torch.allclose(found, expected, 1e-3, 1e-4)


def _targets(engine: Engine, labels: Tensor) -> Tensor:
    """What the last layer is solved for, (J, n, outputs): distilled labels as floats."""
    outputs, objective = engine.network.outputs, engine.objective
    if not labels.is_floating_point():
        labels = objective.soft_labels(outputs, labels.cpu()).to(labels.device)
    targets = labels.flatten(2) if labels.ndim > 2 else labels[..., None]
    # A single logit tells two classes by its sign.
    return 2 * targets - 1 if objective.has_classes and outputs.numel() == 1 else targets
