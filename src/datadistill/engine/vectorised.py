"""J networks of one architecture, computed in the fastest way that is known for them.

Networks are computed side by side in groups, as many groups at a time as there are threads, and a
minibatch of real data in parts that fit the processor's cache. None of this changes a result by
more than rounding.
"""

import math
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import cached_property

import torch
from torch import Tensor

from ..core.network import Loss, Network, Weights
from .choice import EngineName, chosen, using
from .groups import Groups
from .kernels import LANES
from .precomputed import PrecomputedGradient
from .small import FEW_NUMBERS, numbers_of_an_operation
from .stacked import Stacked, stacked
from .traced.layers import FastLayers

PART_BYTES = 2**21  # of the largest layer's result for a part of a minibatch
CHAIN_BYTES = 2 * PART_BYTES  # the same where no graph keeps that layer's result

Parts = Iterable[tuple[Tensor, Tensor]]
"""Inputs and labels of parts of a minibatch."""

LARGE_RESULT = 4096
"""Numbers for one example: for ten of them, more than the 128 KiB that glibc keeps to itself."""


class Vectorised:
    """The losses of J networks of one architecture.

    Attributes:
        network: The architecture.
        stacked: The same layer by layer, if its layers are known: faster, and for many threads.
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        self._name: EngineName = chosen()  # other threads use the same engine
        self.stacked: Stacked | None = stacked(network) if self._name != "plain" else None

    @property
    def has_large_results(self) -> bool:
        """Whether layers have results that the system's memory is asked for, one by one."""
        return self.stacked is None or self.stacked.widest >= LARGE_RESULT

    @property
    def threads(self) -> int:
        """How many groups or parts may be computed at the same time, from where it is asked."""
        # A Network lends its module the weights for each pass, so it serves one thread.
        on_cpu = self.network.device.type == "cpu"
        return torch.get_num_threads() if self.stacked and on_cpu else 1

    def groups(self, networks: int, *, traced: bool = False) -> Groups:
        """How networks are divided into groups side by side, if their updates are traced or not.

        A group is computed by one thread: threads that share small operations wait for each other
        all the time. Only a single wide network is left to torch, with all threads.
        """
        threads, together = self.threads, self.together(traced=traced)
        if self.stacked is None or threads == 1:
            return Groups(networks, networks if together else 1, 0)
        size = math.ceil(networks / threads) if together else 1
        alone = networks == 1 and not together
        return Groups(networks, size, 0 if alone else min(threads, math.ceil(networks / size)))

    @property
    def side_by_side(self) -> bool:
        """Whether networks are faster side by side than one after the other."""
        on_cpu = self.network.device.type == "cpu"
        return self.stacked is None or self.stacked.narrow or not on_cpu

    def together(self, *, traced: bool) -> bool:
        """Whether updates of several networks are faster side by side.

        Of those that are traced only those by C kernels are, and those of many small operations:
        torch computes large matrices one after the other in less time than stacks of them.
        """
        fast = self.stacked
        by_kernels = fast is not None and (fast.by_kernels or fast.chain is not None)
        return self.side_by_side and (by_kernels or not traced or self.small)

    @cached_property
    def small(self) -> bool:
        """Whether operations are so small that to call them takes longer than to make them."""
        traceable = self.network.side_by_side and not self.network.recurrent
        if self.stacked or not traceable or self._name == "plain":
            return False
        return numbers_of_an_operation(self.network) < FEW_NUMBERS

    def losses(self, weights: Weights, inputs: Tensor, labels: Tensor, loss: Loss) -> Tensor:
        """Returns ℓ(x, θ_j) for each of J networks, shape (J,); twice differentiable."""
        return (self.stacked or self.network).losses(weights, inputs, labels, loss)

    def own_losses(self, weights: Weights, inputs: Tensor, labels: Tensor, loss: Loss) -> Tensor:
        """Returns ℓ(x_j, θ_j), each network on inputs (J, N, …) and labels of its own."""
        return (self.stacked or self.network).own_losses(weights, inputs, labels, loss)

    def mean_losses(
        self, weights: Weights, inputs: Tensor, labels: Tensor, loss: Loss, threads: int = 1
    ) -> Tensor:
        """The same for a loss that is a mean over examples; once differentiable.

        Where no layer mixes examples, they are taken part by part, by so many threads.
        """
        if self.stacked is None:
            if not self.small:
                return self._once(weights, inputs, labels, loss)
            each = range(len(next(iter(weights.values()))))
            alone = ({name: w[j : j + 1] for name, w in weights.items()} for j in each)
            return torch.cat([self._once(own, inputs, labels, loss) for own in alone])
        networks, share_size = len(next(iter(weights.values()))), math.ceil(len(labels) / threads)
        shares = Groups(len(labels), share_size, threads if threads > 1 else 0)
        of_parts = self._by_chain if self.stacked.chain else self._by_autograd

        def both(leaves: Sequence[Tensor]) -> list[Tensor]:
            """The losses and their gradients."""
            own = {name: leaf.detach() for name, leaf in zip(weights, leaves, strict=True)}

            def share(examples: range, _: object) -> list[Tensor]:
                parts = Groups(len(examples), self._part(networks), 0).numbers
                slices = (slice(examples[n.start], examples[n.stop - 1] + 1) for n in parts)
                return of_parts(own, ((inputs[n], labels[n]) for n in slices), loss, len(labels))

            return _sums(shares.each(share))

        return PrecomputedGradient.apply(both, *weights.values())  # pyright: ignore[reportReturnType]

    def _by_chain(self, weights: Weights, parts: Parts, loss: Loss, examples: int) -> list[Tensor]:
        """The shares of parts in the mean losses, and in their gradients: in C."""
        assert self.stacked
        to = {name: w.new_zeros(w.shape) for name, w in weights.items()}
        each = [self.stacked.add_loss(weights, x, y, loss, len(y) / examples, to) for x, y in parts]
        return [torch.stack(each).sum(0), *to.values()]

    def _by_autograd(
        self, weights: Weights, parts: Parts, loss: Loss, examples: int
    ) -> list[Tensor]:
        """The same for networks of other layers."""

        def part(x: Tensor, y: Tensor) -> list[Tensor]:
            own = {name: w.detach().requires_grad_() for name, w in weights.items()}
            with torch.enable_grad():
                each = self._once(own, x, y, loss) * (len(y) / examples)
                found = torch.autograd.grad(each.sum(), [*own.values()], materialize_grads=True)
            return [each.detach(), *found]

        return _sums(part(x, y) for x, y in parts)

    def _once(self, weights: Weights, inputs: Tensor, labels: Tensor, loss: Loss) -> Tensor:
        """The losses, once differentiable."""
        with self.fast_layers(len(next(iter(weights.values())))):
            return self.losses(weights, inputs, labels, loss)

    @contextmanager
    def fast_layers(self, networks: int) -> Generator[None]:
        """Within it, a single network is computed by its fastest layers, once differentiable."""
        if self._name == "plain" or networks > 1 or self.network.device.type != "cpu":
            yield
        else:
            with using(self._name), FastLayers(once=True):
                yield

    def _part(self, networks: int) -> int:
        """How many examples of a minibatch to take at once, for networks side by side."""
        assert self.stacked
        size = self.stacked.widest * networks * self.network.dtype.itemsize
        weights = sum(w.numel() for w in self.network.weights.values()) * networks
        # Each part has a gradient of its own to be added up. Of a chain little else is kept.
        room = CHAIN_BYTES if self.stacked.chain else PART_BYTES
        most = max(room, 4 * weights * self.network.dtype.itemsize)
        return whole_vectors(most // size)


def whole_vectors(images: int) -> int:
    """At most so many images, and at least one, that leave no part of a vector unused."""
    return images // LANES * LANES or max(1, images)


def _sums(lists: Iterable[list[Tensor]]) -> list[Tensor]:
    """Adds lists of tensors up as they come, in order."""
    total: list[Tensor] = []
    for number, more in enumerate(lists):
        if number < 2:  # the sums of the first two are new tensors, to which the others are added
            total = [own + one for own, one in zip(total, more, strict=True)] if number else more
        else:
            for own, another in zip(total, more, strict=True):
                own += another
    return total
