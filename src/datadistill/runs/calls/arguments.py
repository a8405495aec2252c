"""The arguments of ``dd.distill``: objects, or names as on the command line; checked at once."""

import inspect
from collections.abc import Mapping
from typing import Any

from torch import nn

from ...core.objective import Objective, OwnObjective
from ...core.seam import Seam
from ...errors import ConfigError, ModelError
from ...given import kind_of
from ..seams import SEAMS, Given, settings_of


def check_module(module: object) -> None:
    """Refuses what is neither a network nor the name of one, before any data are read."""
    if isinstance(module, nn.Module | str):
        return
    remedy = "Pass a module, e.g. dd.models.LeNet(), or a name such as 'lenet'."
    if isinstance(module, type) and issubclass(module, nn.Module):
        remedy = f"Pass an object of it: {module.__name__}(…)."
    elif inspect.isroutine(module):
        remedy = "Make it the forward() of an nn.Module that holds its weights."
    raise ModelError(f"The network is {kind_of(module)}, not an object of nn.Module.", remedy)


def separate(seams: Mapping[str, Any]) -> tuple[Given, dict[str, str]]:
    """Tells objects from names, as ``adjoint=Truncated(3)`` and ``adjoint="truncated"``.

    Args:
        seams: What was given, by setting; None for what was not.
    """
    named = {setting: given for setting, given in seams.items() if isinstance(given, str)}
    objects = {
        setting: _object(SEAMS[setting], given)
        for setting, given in seams.items()
        if given is not None and setting not in named
    }
    objects["rule"] = objects.pop("update_rule", None)
    return Given(**objects), named


def check_given_once(given: Given, settings: Mapping[str, Any]) -> None:
    """Refuses a setting that contradicts an object: Truncated(3) with window=5."""
    for setting, own in settings_of(*given.objects).items():
        if setting in settings and settings[setting] != own:
            raise ConfigError(
                f"{setting} is {settings[setting]!r}, but the object that was passed has {own!r}.",
                f"Leave {setting} out.",
            )


def _object(seam: type[Seam], given: Any) -> Any:
    if isinstance(given, seam):
        return given
    if seam is Objective and callable(given) and not isinstance(given, type):
        function: Any = given
        return OwnObjective.of(function)
    of_it = isinstance(given, type) and issubclass(given, seam)
    names = ", ".join(seam.names())
    raise ConfigError(
        f"{seam.setting()} is {kind_of(given)}, not an object of dd.{seam.__name__}.",
        f"Pass an object of it: {given.__name__}(…)."
        if of_it
        else f"Pass one, or a name: {names}.",
    )
