"""J networks of one architecture at once: how they are computed, and what memory they need."""

from contextlib import nullcontext

import torch
from torch import Tensor

from ..core.network import Network, Weights
from ..core.update import UpdateRule
from ..errors import ConfigError
from .saved import saved_storages
from .vectorised import Vectorised, whole_vectors

DEFAULT_BYTES = 2**30
LAYER_BYTES = 2**24  # of a layer's result in testing: larger ones leave the processor's cache
LAYERS_AT_ONCE = 4  # results of that size that exist at the same time, with room for scores
ALONE_BYTES = 2**28  # of all layers' results where networks are tested one by one


class SideBySide:
    """J networks of one architecture at once, in the fastest way that is known for them.

    Args:
        network: The architecture.
        example: A few inputs.
        memory: Memory limit in bytes.
    """

    def __init__(self, network: Network, example: Tensor, memory: int = DEFAULT_BYTES) -> None:
        if memory < 1:
            raise ConfigError(f"memory is {memory}.", "Set the memory limit to a positive number.")
        self.network = network
        self._layer_bytes = min(LAYER_BYTES, memory // (2 * LAYERS_AT_ONCE))
        self.example = example.to(network.device, network.dtype)
        self._vectorised = Vectorised(network)
        self._stacked = self._vectorised.stacked

    @property
    def threads(self) -> int:
        """How many groups of networks may be computed at the same time."""
        return self._vectorised.threads

    @property
    def side_by_side(self) -> bool:
        """Whether networks are faster side by side than one after the other."""
        return self._vectorised.side_by_side

    def outputs(self, weights: Weights, inputs: Tensor) -> Tensor:
        """Returns the outputs (J, N, …) for the same N inputs, keeping no graph.

        Inputs that one layer cannot hold at once are taken in parts, but only where no layer
        mixes examples.
        """
        networks = len(next(iter(weights.values())))
        wide = not self.side_by_side  # of others, torch's own layers are as fast forwards
        with torch.no_grad(), self._vectorised.fast_layers(networks) if wide else nullcontext():
            if self._stacked is None:
                each = [self.network(_one(weights, j), inputs) for j in range(networks)]
                return torch.cat(each)
            size = self._stacked.widest * networks * self.network.dtype.itemsize
            parts = inputs.split(whole_vectors(self._layer_bytes // size))
            return torch.cat([self._stacked(weights, part) for part in parts], dim=1)

    def test_batch(self, most: int) -> int:
        """How many test inputs to pass to :meth:`outputs`: at most so many.

        It does not depend on the number of networks: batch normalisation would show it.
        """
        if self._stacked:
            return most
        return max(1, min(most, ALONE_BYTES // max(self._kept(), 1)))

    def bytes_in_training(self, images: int, rule: UpdateRule) -> int:
        """Estimates what one network needs while it is trained on so many images."""
        own = self.network.weights
        weights = sum(w.nbytes for w in own.values())
        carried = sum(t.nbytes for t in rule.start(own).leaves()) - weights
        # θ_t, θ_{t+1}, the gradient and what they are made of; activations and their gradients.
        return 5 * weights + 2 * carried + 2 * images * self._kept()

    def bytes_in_testing(self) -> int:
        """Estimates what testing needs, however many networks there are."""
        return LAYERS_AT_ONCE * self._layer_bytes if self._stacked else ALONE_BYTES

    def _kept(self) -> int:
        """Bytes that the graph of one network's forward pass keeps for one input."""
        leaves = {n: w.clone().requires_grad_() for n, w in self.network.weights.items()}
        # Two: batch normalisation refuses one. A copy: a part would count as the whole.
        inputs = self.example[:2].clone()

        def forward() -> Tensor:
            return self.network({name: w[None] for name, w in leaves.items()}, inputs)

        of_weights = {w.untyped_storage().data_ptr() for w in leaves.values()}
        kept = saved_storages(forward)
        whole = sum(size for pointer, size in kept.items() if pointer not in of_weights)
        return whole // len(inputs)


def _one(weights: Weights, j: int) -> Weights:
    return {name: w[j : j + 1] for name, w in weights.items()}
