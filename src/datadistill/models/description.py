"""Describing a network in a file: its name, its constructor arguments, its weights."""

import hashlib
from typing import Annotated

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch import Tensor, nn

from ..core.network import Network, Weights
from ..errors import ModelError
from .registry import built_in_name


class Architecture(BaseModel):
    """A network as files name it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(max_length=1000)]
    """A built-in network's name, or where a user's own class was: ``package.module:Class``."""
    built_in: bool
    arguments: dict[str, Annotated[int, Field(ge=1, le=2**20)]] = {}
    """Constructor arguments of a built-in network."""
    weights: dict[str, Annotated[str, Field(pattern=r"^\w+\[[\d, ]*\]$")]]
    """Type and shape of every trainable weight, e.g. ``float32[6, 1, 5, 5]``."""

    @property
    def shapes(self) -> dict[str, str]:
        """The shape of every trainable weight, as text."""
        return {name: text[text.index("[") :] for name, text in self.weights.items()}

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{n}={value}' for n, value in self.arguments.items())})"


def describe(network: Network, module: nn.Module) -> Architecture:
    """Returns what a file says about a network; refuses what no file may say."""
    name = built_in_name(module)
    kind = type(module)
    try:
        return Architecture(
            name=name or f"{kind.__module__}:{kind.__qualname__}",
            built_in=name is not None,
            arguments=dict(getattr(module, "arguments", {})) if name else {},
            weights={n: f"{_dtype(w)}{list(w.shape)}" for n, w in network.weights.items()},
        )
    except ValidationError as error:
        what = error.errors()[0]
        field = ".".join(map(str, what["loc"]))
        raise ModelError(
            f"{kind.__name__[:40]} cannot be recorded: {field}: {what['msg']}.",
            "Give its class a shorter name, or build a smaller network.",
        ) from error


def weights_hash(weights: Weights) -> str:
    """SHA-256 of named tensors: names, types, shapes and bytes."""
    digest = hashlib.sha256()
    for name in sorted(weights):
        tensor = weights[name].detach().cpu().contiguous()
        digest.update(f"{name}:{_dtype(tensor)}{list(tensor.shape)}".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _dtype(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
