"""The amounts that views draw, and those that they are given."""

from dataclasses import fields

import torch

from ...errors import ConfigError
from .view import View


def between(low: float, high: float, stream: torch.Generator) -> float:
    """A number that is uniform between two others."""
    drawn = torch.rand((), dtype=torch.float64, generator=stream)
    return low + (high - low) * float(drawn)


LARGE = 1e6


def require_positive(view: View, below: float = LARGE) -> None:
    """Refuses a view whose fields are not positive numbers, or too large."""
    for field in fields(view):  # pyright: ignore[reportArgumentType]
        value = getattr(view, field.name)
        if not isinstance(value, int | float) or not 0 < value < below:
            raise ConfigError(
                f"{field.name} of the view {view.name} is {repr(value)[:40]}.",
                f"Set it to a positive number below {below:g}.",
            )
