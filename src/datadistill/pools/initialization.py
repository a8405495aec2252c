"""Random pre-trained initializations: networks drawn from a pool."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import torch

from ..core.initialization import Initialization, NetworkGenerator
from ..core.network import Network, Weights
from ..core.seam import Record
from ..core.values import one_line
from ..errors import ConfigError, PoolError
from ..hints import REST, command
from .pool import Pool


@dataclass(frozen=True)
class PoolInit(Initialization, name="random-pretrained"):
    """Training networks of a pool, drawn at random: what distillation sees.

    Attributes:
        pool: The pool.
        networks: How many of its training networks to draw from: the first ones; all by default.
        noise: Deviation of the noise on each drawn weight, as a share of the deviation of its
            tensor. Data distilled for a small pool know its networks too well; noise stands in
            for a larger one.
    """

    pool: Pool
    networks: int | None = None
    noise: float = 0.0

    settings = MappingProxyType({"networks": "pool_networks", "noise": "pool_noise"})

    def record(self) -> Record:
        """The pool by its name and the hashes of its networks: files do not hold them."""
        pool = self.pool
        return {
            "name": self.name,
            "scheme": pool.origin.configuration["scheme"],
            "pool": {
                "name": pool.name,
                "identity": pool.origin.identity,
                "networks": self.count,
                "seen": "".join(one[:16] for one in pool.hashes("train", self.count)),
            },
        }

    def as_settings(self) -> dict[str, Any]:
        """The pool by its path."""
        path = str(self.pool.path.absolute())
        return {**super().as_settings(), "pool": path, "pool_networks": self.count}

    def resolved_settings(self) -> dict[str, Any]:
        """A pool that is extended later changes nothing."""
        return {"pool_networks": self.count}

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Any:
        """What evaluation sees: the held-out networks of the pool, which is to be named."""
        return HeldOutInit(values["pool"]["name"], record_of=dict(values))

    @property
    def held_out_networks(self) -> int:
        """How many networks the pool holds out."""
        return self.pool.count("held-out")

    @property
    def digest(self) -> str:
        """A hash of the networks to draw from."""
        return self.pool.digest(self.count)

    def __post_init__(self) -> None:
        if not 0 <= self.noise < math.inf:
            raise ConfigError(f"pool_noise is {self.noise}.", "Set it to 0 or more, e.g. 0.2.")
        most = self.pool.count("train")
        if not 1 <= self.count <= most:
            raise ConfigError(
                f"pool_networks is {self.count}, and the pool {self.pool.path} has {most} training "
                "networks.",
                f"Set --pool-networks {most}, or make more: "
                f"{self.pool.extending('--networks', max(self.count, 200))}",
            )
        if not self.pool.count("held-out"):
            raise PoolError(
                f"The pool {self.pool.path} has no held-out networks to measure on.",
                f"Make some: {self.pool.extending('--held-out', 100)}",
            )

    @property
    def count(self) -> int:
        """How many networks there are to draw from."""
        return self.pool.count("train") if self.networks is None else self.networks

    def sample(self, network: Network, generators: Sequence[torch.Generator]) -> Weights:
        """Draws one network from each generator; returns their stacked weights θ₀."""
        return network.stack([self._drawn(one) for one in generators])

    def _drawn(self, random: torch.Generator) -> Weights:
        """θ + σ·ε of one network, ε from N(0, 1)."""
        number = int(torch.randint(self.count, (), generator=random))
        weights = self.pool.network("train", number)
        if not self.noise:
            return weights
        noisy: Weights = {}
        for name, w in weights.items():
            epsilon = torch.randn(w.shape, generator=random).to(w)
            noisy[name] = w + self.noise * w.std(correction=0) * epsilon
        return noisy


@dataclass(frozen=True)
class HeldOutInit(Initialization):
    """Held-out networks of a pool, one after the other: what evaluation sees.

    Network number k is the k-th of them, so that none comes twice.

    Attributes:
        of: What the pool is called that was distilled for.
        pool: The pool, if it has been given.
        record_of: What is recorded of it.
    """

    of: str
    pool: Pool | None = field(default=None, compare=False)
    record_of: Record = field(default_factory=dict[str, Any], compare=False)

    __repr__ = one_line

    def record(self) -> Record:
        """That of the initialization that was distilled for."""
        return {"name": PoolInit.name, **self.record_of}

    @property
    def held_out_networks(self) -> int:
        """How many networks the pool holds out."""
        return self.found.count("held-out")

    @property
    def choosing(self) -> PoolInit:
        """The networks that were distilled for: held-out ones are for figures that are reported."""
        return PoolInit(self.found, self.record_of["pool"]["networks"])

    def restored(self, weights: Weights, pool: Any = None) -> "HeldOutInit":  # noqa: ARG002
        """The same with the pool that the user named."""
        return replace(self, pool=pool)

    @property
    def found(self) -> Pool:
        """The pool; an error if it has not been given."""
        if self.pool is None:
            raise PoolError(
                f"These distilled data are for networks of the pool {self.of}, which is not "
                "in the file.",
                "Name its folder: --pool DIR, or load(…).with_pool(DIR).",
            )
        return self.pool

    def sample(self, network: Network, generators: Sequence[torch.Generator]) -> Weights:
        """Takes one network for each generator, by its number."""
        numbers = [one.number if isinstance(one, NetworkGenerator) else 0 for one in generators]
        return network.stack([self.found.network("held-out", number) for number in numbers])


def at_most(initialization: Initialization, networks: int) -> int:
    """As many held-out networks as are wanted by default, or all that a pool has."""
    there = initialization.held_out_networks
    return networks if there is None else min(networks, there)


def check_enough(initialization: Initialization, networks: int) -> None:
    """Refuses more held-out networks than a pool has."""
    most = at_most(initialization, networks)
    if networks > most:
        raise ConfigError(
            f"networks is {networks}, but the pool has {most} held-out networks.",
            f"Use {most} or fewer, or make more: "
            f"{command('pretrain', REST, '--held-out', networks)}",
        )
