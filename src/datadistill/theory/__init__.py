"""Theory: cases in which the best distilled data are known in closed form."""

from .linear import (
    best_below,
    distilled_for_any_start,
    expected_excess,
    gd_step,
    loss,
    minimum,
    spectral_bound,
    unreachable_start,
)

__all__ = [
    "best_below",
    "distilled_for_any_start",
    "expected_excess",
    "gd_step",
    "loss",
    "minimum",
    "spectral_bound",
    "unreachable_start",
]
