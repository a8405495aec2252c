"""Presets: settings for a purpose, below those that a recipe or a user gives."""

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal

from ...core.names import FIXED_NAMES
from ...core.settings import Outer
from ...hints import flag
from ..settings import LearnedSettings, UnrollSettings

if TYPE_CHECKING:
    from ..config import RunConfig

Preset = Literal["fast", "paper", "best"]

OUTER = tuple(f.name for f in fields(Outer) if f.name not in ("iterations", "seed"))
"""The settings of the outer schedule."""
COMPUTING = ("micro_batch", "compiled")
"""Settings of the unroll that change no result."""
BEYOND: dict[str, Any] = {
    "parametrisation": "plain",
    "bases": None,
    "downscale": None,
    "labels": None,
    "learn_momentum": False,
    "learn_layer_rates": False,
    "view": None,
    "architectures": (),
    **{f.name: f.default for f in fields(UnrollSettings) if f.name not in COMPUTING},
}
"""What goes beyond the paper (docs/beyond.md), switched off."""
PAPER: dict[str, Any] = {
    **BEYOND,
    **{f.name: f.default for f in fields(Outer) if f.name in OUTER},
    "start": "noise",
    "keep": "last",
}
"""The paper's outer schedule, and that its last distilled data are the result."""

FIXED: dict[str, Any] = {
    "labels": "soft",
    "batch_size": 256,
    "outer_lr": 0.05,
    "rates_lr": 0.01,
    "betas": (0.5, 0.99),
    "averaging": 0.98,
}
"""The best that is known for one fixed network, trained before or not."""
RANDOM: dict[str, Any] = {
    "labels": "soft",
    "start": "k-means",
    "batch_size": 256,
    "rates_lr": 0.01,
    "averaging": 0.9,
    "momentum": 0.5,
    "adjoint": "truncated",
    "window": 30,
}
"""The best that is known for networks with random weights; their unroll is long, too."""
PRETRAINED: dict[str, Any] = {"labels": "soft", "start": "k-means", "rates_lr": 0.01}
"""The best that is known for networks of a pool, which few updates adapt."""
UPDATES = 100
"""How many updates a long unroll has at least."""
EXCLUDED_BY = {
    "adjoint": ("adjoint", "window", "random_window", "window_placement"),
    "update_rule": ("momentum",),
    "learn_labels": ("labels",),
}
"""What a preset leaves alone where one of these settings is given, since it may have no meaning."""


BEST = tuple(dict.fromkeys([*FIXED, *RANDOM, *PRETRAINED, "epochs", "learning_rate"]))
"""All that ``best`` sets."""


def preset_settings(preset: Preset, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a preset.

    Args:
        preset: Its name.
        given: The settings of the recipe and of the user, to which it is adapted.
    """
    match preset:
        case "fast":
            return {}
        case "paper":
            return dict(PAPER)
        case "best":
            return _best(given)


def described(config: "RunConfig") -> str:
    """What the preset ``best`` has become, as flags; without what is the default anyway."""
    default = type(config)()
    values = {name: getattr(config, name) for name in BEST}
    changed = {name: v for name, v in values.items() if v != getattr(default, name)}
    shown = {n: " ".join(map(str, v)) if isinstance(v, tuple) else v for n, v in changed.items()}
    return " ".join(f"{flag(name)} {value}" for name, value in shown.items())


def _best(given: Mapping[str, Any]) -> dict[str, Any]:
    kind = str(given.get("initialization", "random"))
    found = dict(FIXED if kind in FIXED_NAMES else RANDOM if kind == "random" else PRETRAINED)
    excluded = {name for one, names in EXCLUDED_BY.items() if one in given for name in names}
    if given.get("objective", "classification") != "classification":
        excluded |= {"labels", "start"}  # there may be no classes
    if str(given.get("adjoint")).startswith("ridge-head"):
        found["labels"] = "logits"  # it does not see that training on negative labels diverges
    found = {name: value for name, value in found.items() if name not in excluded}
    return found | _long_unroll({**found, **given}) if kind == "random" else found


def _long_unroll(settings: Mapping[str, Any]) -> dict[str, Any]:
    """More epochs; and with momentum, learning rates that make updates as large as without."""
    default = LearnedSettings()
    steps, epochs = (settings.get(name, getattr(default, name)) for name in ("steps", "epochs"))
    rate = settings.get("learning_rate", default.learning_rate)
    return {
        "epochs": max(epochs, math.ceil(UPDATES / steps)),
        "learning_rate": float(f"{rate * (1 - settings.get('momentum', 0)):.3g}"),
    }
