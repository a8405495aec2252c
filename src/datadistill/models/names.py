"""The built-in networks by name."""

from collections.abc import Callable
from typing import TypeVar

from torch import nn

MODELS: dict[str, type[nn.Module]] = {}
"""The networks that have names."""

M = TypeVar("M", bound=type[nn.Module])


def register(name: str) -> Callable[[M], M]:
    """Class decorator: makes a network known by a name."""

    def known(kind: M) -> M:
        MODELS[name] = kind
        return kind

    return known
