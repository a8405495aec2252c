"""A user's own network: its class, from ``package.module:Class`` or ``path/to/file.py:Class``."""

from collections.abc import Callable
from typing import Any

from torch import nn

from ..errors import ModelError
from ..importing import Wanted, functions_of


def locate(reference: str) -> Callable[..., object]:
    """Imports the class, or the function that makes a network, that a reference names."""
    found = Wanted("network", "Class", _networks, ModelError).import_from(reference)
    if isinstance(found, nn.Module) or not callable(found):
        raise ModelError(
            f"{reference!r} is an object of the type {type(found).__name__}.",
            "Name a class that derives from torch.nn.Module, or a function that returns one.",
        )
    return found


def locate_function(reference: str) -> Callable[..., Any]:
    """Imports the function that a reference names."""
    found = Wanted("function", "function", functions_of, ModelError).import_from(reference)
    if isinstance(found, type) or not callable(found):
        raise ModelError(
            f"{reference!r} is not a function.", "Name a function of logits and labels."
        )
    return found


def _networks(place: object) -> list[str]:
    return [
        name
        for name, value in getattr(place, "__dict__", {}).items()
        if isinstance(value, type)
        and issubclass(value, nn.Module)
        and not value.__module__.startswith("torch.")
    ]
