"""Learners: J networks in training."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from torch import Tensor

from .network import Weights
from .values import different, one_line, same


class Learner(NamedTuple):
    """J networks in training.

    Attributes:
        weights: θ_t.
        memory: What the update rule carries along from one update to the next, by names of its
            own: a velocity, moments, a count.
    """

    weights: Weights
    memory: Mapping[str, Weights] = {}

    __repr__ = one_line
    __eq__ = same
    __ne__ = different

    def leaves(self) -> list[Tensor]:
        """All tensors in a fixed order."""
        carried = (tensor for tree in self.memory.values() for tensor in tree.values())
        return [*self.weights.values(), *carried]

    def rebuild(self, leaves: Sequence[Tensor]) -> "Learner":
        """The inverse of :meth:`leaves`, with this learner's names."""
        tensors = iter(leaves)

        def tree(like: Weights) -> Weights:
            return {name: next(tensors) for name in like}

        return Learner(tree(self.weights), {name: tree(own) for name, own in self.memory.items()})
