"""A run's configuration: the same names in flags, in YAML and in Python."""

import functools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ..core.names import FIXED_NAMES
from ..core.settings import DistillerConfig, default_networks
from ..core.values import one_line
from ..errors import ConfigError, did_you_mean
from .settings import (
    GROUPS,
    CheckpointSettings,
    DataSettings,
    LearnedSettings,
    MachineSettings,
    NetworkSettings,
    OuterSettings,
    UnrollSettings,
)

if TYPE_CHECKING:
    from pydantic import TypeAdapter

NAMING = ("objective", "update_rule", "adjoint", "initialization", "parametrisation", "view")
"""The settings that name an implementation."""
VALIDATIONS = 20
"""How many times a run is validated on held-out training data, unless told otherwise."""


@dataclass(frozen=True, kw_only=True)
class RunConfig(
    LearnedSettings,
    UnrollSettings,
    OuterSettings,
    DataSettings,
    NetworkSettings,
    MachineSettings,
    CheckpointSettings,
    DistillerConfig,
):
    """All settings of a run, each by its own name: ``config.batch_size``.

    The groups in :mod:`datadistill.runs.settings` describe them. The outer schedule is our own;
    :data:`~datadistill.runs.calls.presets.PAPER` holds the paper's.
    """

    __repr__ = one_line

    def __post_init__(self) -> None:
        super().__post_init__()
        default = {field.name: field.default for field in fields(self)}
        if any(getattr(self, name) != default[name] for name in NAMING):
            from .seams import check_names  # which imports torch; the defaults need no check

            check_names(self)
        if self.keep == "best" and not self.validation:
            raise ConfigError("keep=best needs validation data.", "Set validation, e.g. to 0.1.")

    def for_examples(self, examples: int) -> Self:
        """Fills in what depends on the number of real training examples."""
        every = self.validate_every or math.ceil(self.iterations / VALIDATIONS)
        return replace(super().for_examples(examples), validate_every=every)

    def as_planned(self, before: Self) -> Self:
        """The same with the schedule that was planned before, unless it has one of its own."""
        if self.plans != before.plans:  # planned again just before the run was stopped
            return replace(self, plans=before.plans, iterations=before.iterations)
        both = self.outer_schedule == before.outer_schedule == "cosine"
        default = both and self.decay_every == self.iterations
        return replace(self, decay_every=before.decay_every) if default else self

    def scaled(self, iterations: int) -> Self:
        """The same schedule over another number of outer steps."""
        share = iterations / self.iterations
        every = self.decay_every and max(1, round(self.decay_every * share))
        validate = max(1, math.ceil(iterations / VALIDATIONS))
        return replace(self, iterations=iterations, decay_every=every, validate_every=validate)

    def check_division(self) -> None:
        """Refuses more processes than can divide the work, before any is started."""
        from ..engine.team import check_division

        networks = self.networks or default_networks(fixed=self.initialization in FIXED_NAMES)
        check_division(networks, self.processes or 1)

    def mapping(self) -> dict[str, Any]:
        """All settings in plain types, as YAML and JSON have them, group by group."""
        values = json.loads(_adapter().dump_json(self))
        return {name: values[name] for name in NAMES}


@functools.cache
def _adapter() -> "TypeAdapter[RunConfig]":
    from pydantic import TypeAdapter

    return TypeAdapter(RunConfig)


NAMES = tuple(field.name for group in GROUPS.values() for field in fields(group))
"""Every setting: a field of its group, a flag and a name in YAML and Python."""

FREE = frozenset(
    {
        "data_dir",
        "pool",
        "weights",
        "processes",
        "threads",
        "compiled",
        "engine",
        "checkpoint_every",
        "checkpoint_minutes",
        "tensorboard",
        "iterations",
        "plans",
    }
)
"""Settings that a resumed run may change: where, how fast, how far, but not what."""

MACHINE = FREE - {"iterations", "plans"} | {"device"}
"""Settings that say where a run happened; an artefact does not tell them."""


def config_from(settings: Mapping[str, Any], where: str = "") -> RunConfig:
    """Validates settings from YAML or Python.

    Args:
        settings: Names and values.
        where: The file they come from, for error messages.
    """
    prefix = f"{where}: " if where else ""
    for name in settings:
        if name not in NAMES:
            raise ConfigError(
                f"{prefix}There is no setting {name!r}.{did_you_mean(str(name), NAMES)}",
                f"The settings are: {', '.join(NAMES)}.",
            )
    from pydantic import ValidationError

    try:
        # Strict as JSON is: a number is a number, and a list is a tuple.
        return _adapter().validate_json(json.dumps(dict(settings), default=_plain), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else "?"
        raise ConfigError(
            f"{prefix}{name} is {settings.get(name)!r}.", f"Invalid {name}: {first['msg']}."
        ) from None
    except ConfigError as error:
        raise ConfigError(f"{prefix}{error.what}", error.remedy) from None
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"{prefix}Invalid settings: {error}.", "Use plain names and values."
        ) from None


def _plain(value: object) -> str:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not a plain type")


def differences(old: RunConfig, new: RunConfig) -> list[str]:
    """The differences that a resumed run must not have, each as ``name: old → new``."""
    before, after = old.mapping(), new.mapping()
    return [
        f"{name}: {before[name]} → {after[name]}"
        for name in NAMES
        if name not in FREE and before[name] != after[name]
    ]
