"""Updates of a chain of layers: a gradient is one call of C code, and so are its products."""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from ..core.distilled import Step
from ..core.engine import Products, Recorded
from ..core.gradients import gradient
from ..core.learner import Learner
from ..core.network import Network, Weights
from ..core.objective import Classification, Objective
from ..core.random import stream
from .chain import Chain
from .kernels import Kept
from .stacked import Stacked, stacked
from .traced import same_products


@dataclass(frozen=True)
class ChainedFunctions:
    """∇ℓ and its products with some u, for weights and steps of any number.

    Attributes:
        fast: The network.
        chain: Its layers.
    """

    fast: Stacked
    chain: Chain

    def takes(self, weights: Weights, step: Step) -> bool:
        """Whether the code is for such tensors."""
        dtype = next(iter(weights.values())).dtype
        return step.inputs.dtype == dtype and step.labels.dtype in (dtype, torch.int64)

    def graph_bytes(self, learner: Learner, step: Step) -> int:
        """What a recorded gradient keeps beside the learner and the step: itself, and more."""
        values = sum(w.nbytes for w in learner.weights.values())
        return values + self.chain.kernel.bytes_for(_of_each(step.inputs, step, learner.weights))

    def gradient(self, weights: Weights, step: Step) -> Weights:
        """∇ℓ."""
        return self.record(weights, step).values

    def record(self, weights: Weights, step: Step) -> "ChainedGradient":
        """∇ℓ, and what its products need."""
        with torch.no_grad():
            x, labels = (_of_each(one, step, weights) for one in (step.inputs, step.labels))
            labels = labels.contiguous()
            values = {name: w.new_zeros(w.shape) for name, w in weights.items()}
            kept = self.chain.add_gradient(self.fast.all(weights), x, labels, values)
        return ChainedGradient(self, values, kept, labels, bool(step.learning_rate.ndim))


@dataclass
class ChainedGradient:
    """A gradient that C code has computed.

    Attributes:
        functions: The code.
        values: ∇ℓ.
        kept: What its products need, until they have been computed.
        labels: The labels (J, N, …).
        own: Whether each network has a step of its own.
    """

    functions: ChainedFunctions
    values: Weights
    kept: Kept | None
    labels: Tensor
    own: bool

    def products(self, u: Weights) -> Products:
        """The products of ∇ℓ with u. What was kept is gone afterwards."""
        assert self.kept
        kept, self.kept = self.kept, None
        with torch.no_grad():
            found = {name: own.new_zeros(own.shape) for name, own in u.items()}
            along = self.functions.fast.along(u)
            back = self.functions.chain.add_products(kept, self.labels, along, found)
        if not self.own:  # all networks together
            back = tuple(one.sum(0) for one in back)
        return Products(self.values, found, *back)


_known: WeakKeyDictionary[Network, ChainedFunctions | None] = WeakKeyDictionary()
"""What has been compared with autograd."""


def chained(
    network: Network, fast: Stacked | None, objective: Objective
) -> ChainedFunctions | None:
    """The functions for a network, if its layers and its inner loss are known in C.

    Args:
        network: The architecture.
        fast: The same layer by layer, if its layers are known.
        objective: What has the inner loss.
    """
    if fast is None or fast.chain is None or not _is_cross_entropy(network, objective):
        return None
    if network not in _known:
        found = ChainedFunctions(fast, fast.chain)
        _known[network] = found if _agrees(found, network, objective) else None
    return _known[network]


def is_chained(network: Network, objective: Objective) -> bool:
    """Whether updates of a network are made in C."""
    return chained(network, stacked(network), objective) is not None


def _is_cross_entropy(network: Network, objective: Objective) -> bool:
    """Whether the inner loss is cross-entropy over the outputs."""
    writer = next(kind for kind in type(objective).__mro__ if "inner_loss" in vars(kind))
    return writer is Classification and len(network.outputs) == 1 and network.outputs[0] > 1


def _agrees(found: ChainedFunctions, network: Network, objective: Objective) -> bool:
    """Whether the products are those of autograd, for some weights."""
    weights = network.stack([network.weights] * 2)
    weights = {name: w + 0.1 * _noise(name, w) for name, w in weights.items()}
    u = {name: _noise(f"u of {name}", w) for name, w in weights.items()}
    x = torch.stack([network.example, network.example.flip(0)])
    labels = _noise("labels", x.new_empty(*x.shape[:2], network.outputs[0])).softmax(-1)
    step = Step(x, labels, x.new_ones(2))

    def losses(theta: Weights, step: Step) -> Tensor:
        return network.own_losses(theta, step.inputs, step.labels, objective.inner_loss).sum()

    def autograd(theta: Weights, step: Step) -> Weights:
        return gradient(lambda own: losses(own, step), theta)

    made, expected = found.record(weights, step), Recorded(autograd, weights, step)
    return same_products(made.products(u), expected.products(u))


def _of_each(tensor: Tensor, step: Step, weights: Weights) -> Tensor:
    """Inputs or labels (J, N, …), which one step for all networks has once."""
    own = step.learning_rate.ndim
    return tensor if own else tensor.expand(len(next(iter(weights.values()))), *tensor.shape)


def _noise(name: str, like: Tensor) -> Tensor:
    return torch.randn(like.shape, generator=stream(0, f"trial of {name}")).to(like)
