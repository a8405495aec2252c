"""The amounts that views draw, and those that they are given."""

import math
from dataclasses import fields

import torch

from ...errors import ConfigError
from .view import View


def between(low: float, high: float, stream: torch.Generator) -> float:
    """A number that is uniform between two others."""
    drawn = torch.rand((), dtype=torch.float64, generator=stream)
    return low + (high - low) * float(drawn)


def require_positive(view: View, below: float = math.inf) -> None:
    """Refuses a view whose fields are not positive numbers."""
    for field in fields(view):  # pyright: ignore[reportArgumentType]
        value = getattr(view, field.name)
        if not isinstance(value, int | float) or not 0 < value < below:
            most = "" if below == math.inf else f" below {below}"
            raise ConfigError(
                f"{field.name} of the view {view.name} is {value!r}.",
                f"Set it to a positive number{most}.",
            )
