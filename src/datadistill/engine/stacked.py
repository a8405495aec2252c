"""J networks of known layers as one, each layer computed for all of them at once.

``vmap`` computes J networks of any module, but many times slower than a machine can. Here the
module is taken apart into layers, of which every one is written for networks side by side. Only
plain layers are known, none of which mixes examples; other modules are left to ``Network``.
"""

from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch.func import vmap

from ..core.network import Loss, Network, Weights
from ..core.random import stream
from .choice import may_use_kernels
from .kernels import kernels
from .program import Program


class Stacked:
    """A network of known layers as a function of the stacked weights of J networks.

    Calls change nothing in it, so that several threads may use it at once.

    Attributes:
        widest: Numbers in the largest result of a layer, for one network and one example.
        narrow: Whether its layers are so narrow that networks are faster side by side than one
            after the other.
        kernels: The C kernels that its layers use, or why they do not; None if there are none for
            any.
        by_kernels: Whether it has convolutions, and kernels compute all of them.
        chain: The layers in C, if they follow one another.
    """

    def __init__(self, network: Network) -> None:
        self._constants = network.constants
        self._program = Program(network.module(), network.example)
        self.widest, self.narrow = self._program.widest, self._program.narrow
        self.kernels, self.by_kernels = self._program.kernels, self._program.by_kernels
        weights = {**network.constants, **network.weights}
        self.chain = self._program.chain({name: w.shape for name, w in weights.items()})
        if self.chain:
            self.kernels = kernels(network.dtype)

    def __call__(self, weights: Weights, inputs: Tensor) -> Tensor:
        """Returns the outputs (J, N, …) of J networks for the same N inputs."""
        networks = len(next(iter(weights.values())))
        return self._outputs(weights, inputs.expand(networks, *inputs.shape))

    def losses(self, weights: Weights, inputs: Tensor, labels: Tensor, loss: Loss) -> Tensor:
        """Returns ℓ(x, θ_j) for each of J networks, shape (J,)."""
        return torch.stack([loss(one, labels) for one in self(weights, inputs)])

    def own_losses(self, weights: Weights, inputs: Tensor, labels: Tensor, loss: Loss) -> Tensor:
        """Returns ℓ(x_j, θ_j), each network on inputs (J, N, …) and labels of its own."""
        outputs = self._outputs(weights, inputs)
        if len(outputs) > 1:
            return vmap(loss)(outputs, labels)
        return loss(outputs[0], labels[0]).unsqueeze(0)

    def add_loss(
        self,
        weights: Weights,
        inputs: Tensor,
        labels: Tensor,
        loss: Loss,
        share: float,
        to: Weights,
    ) -> Tensor:
        """Returns ``share`` · ℓ(x, θ_j), and adds its gradients to others, without autograd."""
        assert self.chain
        inputs = inputs.expand(len(next(iter(weights.values()))), *inputs.shape)
        return self.chain.add_loss(self.all(weights), inputs, labels, loss, share, to)

    def _outputs(self, weights: Weights, inputs: Tensor) -> Tensor:
        return self._program(self.all(weights), inputs)

    def all(self, weights: Weights) -> Weights:
        """With those weights that all networks share."""
        networks = len(next(iter(weights.values())))
        return {**{n: c.expand(networks, *c.shape) for n, c in self._constants.items()}, **weights}

    def along(self, u: Weights) -> Weights:
        """The same for a direction of the weights, along which the shared ones do not change."""
        none = {name: torch.zeros_like(c) for name, c in self.all(u).items() if name not in u}
        return {**none, **u}


_known: WeakKeyDictionary[Network, dict[bool, Stacked | None]] = WeakKeyDictionary()
"""What is known of a network, with and without kernels."""


def stacked(network: Network) -> Stacked | None:
    """Returns a network as :class:`Stacked`, if all its layers are known there."""
    known, kernels = _known.setdefault(network, {}), may_use_kernels()
    if kernels not in known:  # to find out takes as long as some outer steps
        known[kernels] = _tried(network)
    return known[kernels]


def _tried(network: Network) -> Stacked | None:
    example = network.example
    if not network.side_by_side or example.ndim not in (2, 4):
        return None
    weights = network.stack([network.weights, network.weights])
    weights = {name: w + 0.1 * _noise(name, w) for name, w in weights.items()}
    with torch.no_grad():
        try:
            fast = Stacked(network)
            found = fast(weights, example)
        except Exception:  # tracing refuses a module in as many ways as there are modules
            return None
        expected = network(weights, example)
    return fast if agree(found, expected) else None


def agree(found: Tensor, expected: Tensor) -> bool:
    """Whether two ways to compute the same differ by no more than rounding may grow to."""
    tolerance = torch.finfo(expected.dtype).eps ** 0.5 * expected.abs().max()
    return found.shape == expected.shape and bool((found - expected).abs().max() <= tolerance)


def _noise(name: str, like: Tensor) -> Tensor:
    return torch.randn(like.shape, generator=stream(0, f"trial of {name}")).to(like)
