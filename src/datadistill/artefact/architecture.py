"""Describing a network in a header, and fitting a module to such a description."""

import copy
import hashlib

import torch
from torch import Tensor, nn

from .. import models
from ..core.network import Network, Weights
from ..errors import ArtefactError
from .header import Architecture


def describe(network: Network, module: nn.Module) -> Architecture:
    """Returns what an artefact says about the network it is for."""
    name = models.built_in_name(module)
    kind = type(module)
    return Architecture(
        name=name or f"{kind.__module__}:{kind.__qualname__}",
        built_in=name is not None,
        arguments=dict(getattr(module, "arguments", {})) if name else {},
        weights={n: f"{_dtype(w)}{list(w.shape)}" for n, w in network.weights.items()},
    )


def fit(module: nn.Module, architecture: Architecture, constants: Weights) -> nn.Module:
    """Returns a copy of a module with the dtypes and constants that were distilled with.

    A module with other trainable weights than the architecture's is refused.
    """
    module = copy.deepcopy(module)
    parameters = dict(module.named_parameters())
    found = {n: str(list(p.shape)) for n, p in parameters.items() if p.requires_grad}
    wanted = {n: text[text.index("[") :] for n, text in architecture.weights.items()}
    for name in [*wanted, *found]:
        if found.get(name) != wanted.get(name):
            raise ArtefactError(
                f"{type(module).__name__} does not fit these distilled data: its trainable weight "
                f"{name!r} is {found.get(name, 'missing')}, "
                f"theirs is {wanted.get(name, 'missing')}.",
                f"Pass a module of the architecture {architecture.name}.",
            )
    for name, text in architecture.weights.items():
        dtype = getattr(torch, text[: text.index("[")], None)
        if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
            raise ArtefactError(f"The weight {name!r} has the type {text}.", "Make the file again.")
        parameters[name].data = parameters[name].data.to(dtype)
    own = {**parameters, **dict(module.named_buffers())}
    for name, value in constants.items():
        if name not in own or own[name].shape != value.shape:
            raise ArtefactError(
                f"{type(module).__name__} does not fit these distilled data: it has no frozen "
                f"parameter or buffer {name!r} of shape {list(value.shape)}.",
                f"Pass a module of the architecture {architecture.name}.",
            )
        own[name].data = value.to(own[name].device, copy=True)
    return module


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
