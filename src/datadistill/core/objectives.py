"""Objectives by the names that files and flags have for them."""

import re

from ..errors import ConfigError, did_you_mean
from .objective import Classification, Objective, Regression
from .own_objective import OwnObjective
from .poisoning import Poisoning

NAMES = (Classification.name, Regression.name, Poisoning.name)
RECORD = r"^(classification|regression|poisoning \d{1,6}→\d{1,6}|[^\n]{1,500}:[^\n:]{1,500})$"
"""What an artefact may call an objective."""


def objective_named(name: str) -> Objective:
    """Returns the objective that an artefact calls ``name``; runs no code.

    A user's own is known by its name alone then: it has no outer loss.
    """
    if found := re.fullmatch(r"poisoning (\d+)→(\d+)", name):
        return Poisoning(int(found[1]), int(found[2]))
    if ":" in name:
        return OwnObjective(None, name)
    return {"classification": Classification, "regression": Regression}[name]()


def check_name(name: str) -> None:
    """Refuses a flag or setting that names no objective."""
    if name not in NAMES and ":" not in name:
        raise ConfigError(
            f"There is no objective {name!r}.{did_you_mean(name, NAMES)}",
            f"Choose {', '.join(NAMES)}, or your own: package.module:function.",
        )
