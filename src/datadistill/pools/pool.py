"""A pool of pre-trained networks on the disk, of which few are in memory at a time."""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import torch

from ..core.initialization import FixedInit
from ..core.network import Weights
from ..errors import PoolError
from ..given import typed
from ..hints import REST, command
from ..models.description import Architecture
from .chunks import check_file, read_network
from .index import PARTS, Chunk, Index, Origin, Part, read_index

POOL_BYTES = 2**28
"""Default memory limit, in bytes, of the networks that are kept in memory."""


@typed
class Pool:
    """Pre-trained networks of one architecture, in two parts that share none.

    Networks are read one by one, when they are asked for; those used last are kept, as far as
    the bound of memory allows. Every network is checked against its hash when it is read.

    Example::

        pool = dd.Pool("pools/mnist-lenet")
        distilled = dd.distill(train, dd.models.LeNet(), initialization=dd.PoolInit(pool))

    Args:
        path: The folder, made by ``datadistill pretrain``.
        memory: Memory limit in bytes of the networks that are kept.
    """

    def __init__(self, path: str | Path, memory: int = POOL_BYTES) -> None:
        self.path, self.memory = Path(path), memory
        self.index: Index = read_index(self.path)
        for chunk in self.index.chunks:
            check_file(self.path / chunk.file_name, chunk)
        self._places: dict[Part, dict[int, Chunk]] = {
            part: {number: c for c in self.index.chunks_of(part) for number in c.numbers}
            for part in PARTS
        }
        self._kept: OrderedDict[tuple[Part, int], Weights] = OrderedDict()
        self._bytes = 0

    def __repr__(self) -> str:
        return (
            f"<Pool {self.name}: {self.count('train')} networks to train with and "
            f"{self.count('held-out')} held-out ones, {self.origin.architecture}, "
            f"pre-trained on {self.origin.data.name}>"
        )

    @property
    def name(self) -> str:
        """What the folder is called."""
        return self.path.resolve().name

    @property
    def origin(self) -> Origin:
        """All that determines its networks, but for their numbers."""
        return self.index.origin

    @property
    def bytes_in_memory(self) -> int:
        """Bytes of the networks that are kept at the moment."""
        return self._bytes

    def count(self, part: Part) -> int:
        """How many networks a part has, without a gap from number 0 on."""
        return self._counts[part]

    @cached_property
    def _counts(self) -> dict[Part, int]:
        return {
            part: next(n for n in range(len(there) + 1) if n not in there)
            for part, there in self._places.items()
        }

    def hashes(self, part: Part, networks: int | None = None) -> list[str]:
        """The hash of every network's weights, or of the first few."""
        places = self._places[part]
        numbers = range(self.count(part) if networks is None else networks)
        return [places[number].hashes[number - places[number].first] for number in numbers]

    def digest(self, networks: int | None = None) -> str:
        """One hash of the first training networks."""
        return hashlib.sha256("".join(self.hashes("train", networks)).encode()).hexdigest()

    def accuracies(self, part: Part, *, test: bool = False) -> list[float]:
        """Accuracy of each network on held-out training data, or on the test data."""
        chunks = self.index.chunks_of(part)
        return [a for c in chunks for a in (c.test if test else c.validation) or ()]

    def extending(self, *words: object) -> str:
        """The command that extends this pool, with the words of the one that made it."""
        return command("pretrain", REST, *words, "--pool", self.path)

    def network(self, part: Part, number: int) -> Weights:
        """The weights of one network, without the axis of networks."""
        if not 0 <= number < self.count(part):
            more = self.extending("--networks" if part == "train" else "--held-out", number + 1)
            raise PoolError(
                f"The pool {self.path} has no {part} network {number}.",
                f"Choose from 0 to {self.count(part) - 1}, or make more: {more}"
                if self.count(part)
                else f"Make some: {more}",
            )
        key = (part, number)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        chunk = self._places[part][number]
        weights = read_network(self.path / chunk.file_name, chunk, number)
        self._keep(key, weights)
        return weights

    def stack(self, part: Part, numbers: Sequence[int]) -> Weights:
        """The stacked weights of some networks."""
        each = [self.network(part, number) for number in numbers]
        return {name: torch.stack([one[name] for one in each]) for name in each[0]}

    def fixed(self, number: int = 0) -> FixedInit:
        """One of its training networks as a fixed initialization."""
        scheme = self.origin.configuration["scheme"]
        source = f"pool {self.name}, network {number}"
        return FixedInit(number, scheme, self.network("train", number), source)

    def check_fits(
        self, architecture: Architecture, input_shape: Sequence[int], constants: str | None = None
    ) -> None:
        """Refuses an architecture, or inputs, of another shape than those of its networks.

        Args:
            architecture: What the networks are to be used as.
            input_shape: The shape of one input.
            constants: The hash of frozen parameters and buffers, if they are known.
        """
        own, shape = self.origin.architecture, self.origin.data.input_shape
        if list(input_shape) != shape:
            raise PoolError(
                f"The networks of the pool {self.path} take inputs of shape {tuple(shape)}, not "
                f"{tuple(input_shape)}.",
                "Give the data the same size and channels, or make a pool for these.",
            )
        alike = own.shapes == architecture.shapes and (
            not own.built_in
            or (own.name, own.arguments) == (architecture.name, architecture.arguments)
        )
        if not alike or constants not in (None, self.origin.constants):
            raise PoolError(
                f"The pool {self.path} holds networks of the architecture {own}, not "
                f"{architecture}" + (" with these constants." if alike else "."),
                "Use that architecture, or make a pool of this one in another folder.",
            )

    def _keep(self, key: tuple[Part, int], weights: Weights) -> None:
        size = _bytes(weights)
        if size > self.memory:
            return
        while self._bytes + size > self.memory:
            self._bytes -= _bytes(self._kept.popitem(last=False)[1])
        self._kept[key] = weights
        self._bytes += size


def _bytes(weights: Weights) -> int:
    return sum(w.numel() * w.element_size() for w in weights.values())
