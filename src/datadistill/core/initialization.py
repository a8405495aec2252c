"""Initializations: the distribution p(θ₀) that distilled data are made for."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ..errors import ModelError
from ..given import typed
from .names import Scheme, check_scheme
from .network import Network, Weights
from .own_scheme import draw_module
from .random import stream
from .seam import Record, Seam
from .values import equal, same

DRAW: dict[str, Callable[..., Tensor]] = {
    "xavier-normal": nn.init.xavier_normal_,
    "xavier-uniform": nn.init.xavier_uniform_,
    "he-normal": partial(nn.init.kaiming_normal_, nonlinearity="relu"),
    "he-uniform": partial(nn.init.kaiming_uniform_, nonlinearity="relu"),
    "orthogonal": nn.init.orthogonal_,
}


class Initialization(Seam, seam="initialization"):
    """Where the initial weights of networks come from.

    Attributes:
        fixed: Whether every network starts from the same weights. An artefact holds them.
    """

    fixed: ClassVar[bool] = False

    @property
    def draws_anew(self) -> bool:
        """Whether weights are drawn by a scheme, whatever weights the module has."""
        return False

    @abstractmethod
    def sample(self, network: Network, generators: Sequence[torch.Generator]) -> Weights:
        """Draws one network from each generator; returns their stacked weights θ₀."""

    @property
    def digest(self) -> str:
        """A hash of the networks that it draws from, where it draws from some; else empty."""
        return ""

    @property
    def held_out_networks(self) -> int | None:
        """How many networks there are that distillation does not see; None if without end."""
        return None

    @property
    def choosing(self) -> "Initialization | None":
        """What draws networks to choose settings with, if another seed does not draw others."""
        return None

    def resolved_settings(self) -> dict[str, Any]:
        """Settings of a run that are fixed from its start on."""
        return {}

    def restored(self, weights: Weights, pool: Any = None) -> "Initialization":
        """The initialization that was read from an artefact, with what comes with it.

        Args:
            weights: The weights that the artefact holds for a fixed initialization.
            pool: The pool that the user named, for networks drawn from one.
        """
        return self


@dataclass(frozen=True)
class RandomInit(Initialization, name="random"):
    """Random weights, drawn anew for every network.

    Attributes:
        scheme: How matrices and kernels are drawn: Xavier (gain 1) or He (for ReLU), normal or
            uniform; orthogonal; or ``module``: as the module's class draws them when it is made.
            Except with ``module``, biases are 0 and other vectors keep the module's values.
    """

    scheme: Scheme = "xavier-normal"

    settings = MappingProxyType({"scheme": "scheme"})

    def __post_init__(self) -> None:
        check_scheme(self.scheme)

    @property
    def draws_anew(self) -> bool:
        return True

    def sample(self, network: Network, generators: Sequence[torch.Generator]) -> Weights:
        draw = draw_module if self.scheme == "module" else self._draw
        return network.stack([draw(network, generator) for generator in generators])

    def _draw(self, network: Network, generator: torch.Generator) -> Weights:
        return {n: self._draw_weight(n, w, generator) for n, w in network.weights.items()}

    def _draw_weight(self, name: str, own: Tensor, generator: torch.Generator) -> Tensor:
        if "bias" in name.rsplit(".", 1)[-1]:
            return torch.zeros_like(own)
        if own.ndim < 2:  # scales of normalisation layers, slopes of PReLU and the like
            return own
        # Drawn in float32 on the CPU, so that every dtype and device starts alike.
        weight = torch.empty(own.shape, dtype=torch.float32)
        DRAW[self.scheme](weight, generator=generator)
        return weight.to(own.device, own.dtype)


@dataclass(frozen=True)
class FixedInit(Initialization, name="fixed", aliases=("fixed-pretrained",)):
    """One particular network: one that is drawn by a seed, or with :meth:`of` a trained module.

    ``FixedInit()`` does not use the weights of the module that is passed to ``dd.distill``.

    Attributes:
        seed: Which network of the random scheme it is.
        scheme: The scheme it is drawn by.
        weights: Its weights, where they are given and not drawn by seed and scheme.
        source: Where weights that were trained before come from, e.g. ``alexnet.pth``.
    """

    seed: int = 0
    scheme: Scheme = "xavier-normal"
    weights: Weights | None = field(default=None, repr=False, compare=False)
    source: str | None = None

    fixed = True
    settings = MappingProxyType({"seed": "init_seed", "scheme": "scheme"})

    def __eq__(self, other: object) -> bool:
        if type(other) is not FixedInit:
            return NotImplemented
        # Weights are no part of the record, and so of no comparison but this one.
        return same(self, other) and equal(self.weights, other.weights)

    @classmethod
    @typed
    def of(cls, module: nn.Module, source: str | None = None) -> "FixedInit":
        """The weights that a module has, such as a trained one.

        Args:
            module: The module. Its weights are copied, and go into the artefact.
            source: What the artefact calls them; ``weights of LeNet`` and the like by default.
        """
        weights = {name: p.detach().clone() for name, p in module.named_parameters()}
        return cls(weights=weights, source=source or f"weights of {type(module).__name__}")

    @property
    def draws_anew(self) -> bool:
        return self.weights is None

    def record(self) -> Record:
        if not self.is_built_in():
            return super().record()
        trained = {} if self.source is None else {"source": self.source}
        name = "fixed" if self.source is None else "fixed-pretrained"
        return {"name": name, "scheme": self.scheme, "seed": self.seed, **trained}

    def as_settings(self) -> dict[str, Any]:
        found = super().as_settings()
        return found | {"initialization": self.record()["name"]} if self.is_built_in() else found

    def restored(self, weights: Weights, pool: Any = None) -> "FixedInit":
        return replace(self, weights=weights or None)

    def sample(self, network: Network, generators: Sequence[torch.Generator]) -> Weights:
        if self.weights is None:
            generator = stream(self.seed, "fixed initialization")
            one = RandomInit(self.scheme).sample(network, [generator])
        else:
            self._check_fits(network, self.weights)
            one = network.stack([self.weights])
        return {name: w.expand(len(generators), *w.shape[1:]) for name, w in one.items()}

    def _check_fits(self, network: Network, weights: Weights) -> None:
        for name, own in network.weights.items():
            if name not in weights or weights[name].shape != own.shape:
                found = [*weights[name].shape] if name in weights else "missing"
                raise ModelError(
                    f"The weights of the fixed initialization do not fit {network.name}: {name!r} "
                    f"is {found}, not {[*own.shape]}.",
                    "Take them from a module of the same architecture: FixedInit.of(module).",
                )


class NetworkGenerator(torch.Generator):
    """The generator of one network, which also knows the network's number."""

    number: int


def networks_for(seed: int, purpose: str, numbers: Sequence[int]) -> list[NetworkGenerator]:
    """One generator per network, by the network's number."""
    generators: list[NetworkGenerator] = []
    for number in numbers:
        generator = NetworkGenerator()
        generator.manual_seed(stream(seed, purpose, number).initial_seed())
        generator.number = number
        generators.append(generator)
    return generators
