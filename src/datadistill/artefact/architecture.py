"""Fitting a module to what a header says about the network."""

import copy

import torch
from torch import nn

from ..core.network import Weights
from ..errors import ArtefactError
from ..models.description import Architecture

FLOATS = {torch.float16, torch.bfloat16, torch.float32, torch.float64}
"""The types that weights, inputs and learning rates may have."""


def fit(
    module: nn.Module, architecture: Architecture, constants: Weights, *, left_out: bool = False
) -> nn.Module:
    """Returns a copy of a module with the dtypes and constants that were distilled with.

    Parameters that were frozen in distillation are frozen. A module with other trainable weights
    than the architecture's is refused.

    Args:
        module: The module.
        architecture: What the header says of it.
        constants: Frozen parameters and buffers.
        left_out: Whether they were too large for the file, so that the module brings its own.
    """
    module = copy.deepcopy(module)
    parameters = dict(module.named_parameters())
    for name, parameter in parameters.items():
        if name in constants or (left_out and name not in architecture.weights):
            parameter.requires_grad_(False)
    found = {n: str(list(p.shape)) for n, p in parameters.items() if p.requires_grad}
    wanted = architecture.shapes
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
        if dtype not in FLOATS:
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
        # A mask may be infinite where a weight may not, and is of the module's own kind.
        unfit = name in parameters and not value.is_meta and not torch.isfinite(value).all()
        if unfit or own[name].is_floating_point() != value.is_floating_point():
            raise ArtefactError(
                f"The frozen parameter or buffer {name!r} of these distilled data is of type "
                f"{value.dtype}, or not finite.",
                "Make them again.",
            )
        own[name].data = value.to(own[name].device, copy=True)
    return module
