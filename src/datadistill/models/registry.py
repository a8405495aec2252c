"""Networks by name, and a user's own by ``package.module:Class`` or ``file.py:Class``."""

import importlib
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from torch import nn

from ..errors import ModelError, did_you_mean
from .lenet import LeNet
from .linear import Linear
from .mlp import MLP

MODELS: dict[str, type[nn.Module]] = {"lenet": LeNet, "linear": Linear, "mlp": MLP}


def build(name: str, arguments: Mapping[str, int]) -> nn.Module:
    """Makes the built-in network called ``name``."""
    if name not in MODELS:
        raise ModelError(
            f"There is no network called {name!r}.{did_you_mean(name, MODELS)}",
            f"Choose one of: {', '.join(MODELS)}; or your own as package.module:Class.",
        )
    try:
        return MODELS[name](**arguments)
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"The network {name!r} cannot be made with {dict(arguments)}: {error}",
            "Choose another network, or data of a size that it takes.",
        ) from error


def arguments_for(input_shape: Sequence[int], classes: int) -> dict[str, int]:
    """Constructor arguments of built-in networks for square images of a shape."""
    if len(input_shape) != 3 or input_shape[1] != input_shape[2]:
        raise ModelError(
            f"The built-in networks take square images, not inputs of shape {tuple(input_shape)}.",
            "Resize the images, or give your own network as package.module:Class.",
        )
    return {"channels": input_shape[0], "size": input_shape[1], "classes": classes}


def built_in_name(module: nn.Module) -> str | None:
    """The name of a built-in network; None for a user's own module."""
    return next((name for name, kind in MODELS.items() if type(module) is kind), None)


def find(reference: str, arguments: Mapping[str, int]) -> nn.Module:
    """Makes a network from its name or from where its class is.

    Args:
        reference: ``lenet``, ``package.module:Class`` or ``path/to/file.py:Class``.
        arguments: Constructor arguments of built-in networks. A class of the user's own is
            made without any.
    """
    if ":" not in reference:
        return build(reference, arguments)
    place, _, attribute = reference.rpartition(":")
    try:
        kind = getattr(_import(place), attribute)
        module = kind()
    except Exception as error:
        raise ModelError(
            f"The network {reference!r} cannot be made: {type(error).__name__}: {error}",
            "Name a class that needs no arguments, as package.module:Class or file.py:Class.",
        ) from error
    if not isinstance(module, nn.Module):
        raise ModelError(
            f"{reference!r} gives a {type(module).__name__}, not a torch.nn.Module.",
            "Name a class that derives from torch.nn.Module.",
        )
    return module


def _import(place: str) -> object:
    if not place.endswith(".py"):
        if "" not in sys.path:  # as `python -m` does: modules beside the user are found
            sys.path.insert(0, "")
        return importlib.import_module(place)
    path = Path(place)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(place)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # so that the module's own classes can be copied
    spec.loader.exec_module(module)
    return module
