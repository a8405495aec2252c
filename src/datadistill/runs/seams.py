"""From settings to the objects that they name, and back.

A setting such as ``update_rule`` holds a built-in name, ``package.module:Class`` or
``file.py:Class``, perhaps with values: ``file.py:Class(beta=0.9)``. A built-in implementation takes
its fields from other settings: ``Poisoning.settings`` says which.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any, TypeVar

from ..core.adjoint import Adjoint
from ..core.initialization import Initialization
from ..core.network import Weights
from ..core.objective import Objective, OwnObjective
from ..core.parametrisation import Parametrisation
from ..core.seam import Record, Seam, parse
from ..core.update import GradientDescent, LearnedRule, Momentum, UpdateRule, WeightDecay
from ..core.update.layer_rates import layers_of
from ..core.view import Combined, View
from ..errors import ConfigError
from ..importing import Wanted
from ..pools.initialization import PoolInit as PoolInit  # where it registers

SEAMS: dict[str, type[Seam]] = {
    kind.setting(): kind
    for kind in (Objective, UpdateRule, Adjoint, Initialization, Parametrisation, View)
}
"""The settings that name an implementation."""

LEARNED_FROM = 0.5
"""The momentum that learning starts from, unless one is given."""

S = TypeVar("S", bound=Seam)


@dataclass(frozen=True)
class Given:
    """Objects that were given in Python, in place of those that settings name.

    Attributes:
        initialization: Where initial weights come from.
        objective: What the trained networks are judged by.
        adjoint: How the gradient travels back through the updates.
        rule: How learners change their weights.
        parametrisation: How what is learned becomes distilled data.
        view: How real and distilled images are seen.
    """

    initialization: Initialization | None = None
    objective: Objective | None = None
    adjoint: Adjoint | None = None
    rule: UpdateRule | None = None
    parametrisation: Parametrisation | None = None
    view: View | None = None

    @property
    def objects(self) -> list[Seam]:
        """Those that were given."""
        each = (getattr(self, field.name) for field in dataclasses.fields(self))
        return [one for one in each if one is not None]


def make(seam: type[S], settings: Any) -> S:
    """The object that a setting names.

    Args:
        seam: What kind of object.
        settings: All settings, as attributes. Code that they name is imported.
    """
    name, values = parse(getattr(settings, seam.setting()))
    if ":" in name:
        own = _own(seam, name)
        return own.from_values(_changed(own, settings) | values) if isinstance(own, type) else own
    check_meaning(seam, settings)
    return _from_settings(_built_in(seam, name), settings, values)


def named(seam: type[S], text: str) -> S:
    """The object of a built-in name or of ``file.py:Class``, perhaps with values."""
    name, values = parse(text)
    if ":" in name:
        own = _own(seam, name)
        return own.from_values(values) if isinstance(own, type) else own
    return _built_in(seam, name).from_values(values)


def make_rule(settings: Any) -> UpdateRule:
    """The update rule, with momentum and weight decay where they are asked for."""
    if settings.update_rule is None:
        start = settings.momentum or (LEARNED_FROM if settings.learn_momentum else 0)
        rule = Momentum(start) if start else GradientDescent()
    else:
        rule = make(UpdateRule, settings)
        if settings.momentum and "momentum" not in rule.settings.values():
            raise ConfigError(
                f"momentum has no meaning for the update rule {rule.name}.",
                "Set update_rule to momentum or nesterov, or leave momentum out.",
            )
    return WeightDecay(settings.weight_decay, rule) if settings.weight_decay else rule


def with_learned(rule: UpdateRule, settings: Any, weights: Weights) -> UpdateRule:
    """The update rule, with coefficients that are learned where they are asked for.

    Args:
        rule: The rule.
        settings: All settings, as attributes.
        weights: Those of the network, by name.
    """
    if settings.learn_layer_rates and settings.architectures:
        raise ConfigError(
            "Learning rates by layer are for one network, but architectures are given.",
            "Leave out architectures or learn_layer_rates.",
        )
    shares = ("momentum",) if settings.learn_momentum else ()
    layers = tuple(layers_of(weights)) if settings.learn_layer_rates else ()
    return LearnedRule(rule, shares, layers) if shares or layers else rule


def make_view(settings: Any) -> View | None:
    """The view that a setting names, or several one after another; None if it names none."""
    if settings.view is None:
        return None
    if ":" in settings.view:
        return make(View, settings)
    views = [_view(text) for text in View.parts(settings.view)]
    return views[0] if len(views) == 1 else Combined(tuple(views))


def _view(text: str) -> View:
    name, values = parse(text)
    return _built_in(View, name).from_values(values)


def check_names(settings: Any) -> None:
    """Refuses a name that no implementation has, and values that it cannot take; runs no code."""
    for setting, seam in SEAMS.items():
        text = getattr(settings, setting)
        if text is None or ":" in text:
            continue
        if seam is View:
            make_view(settings)
        else:
            _built_in(seam, parse(text)[0])
    # Settings without a meaning are refused later: a recipe may still change the objective.
    name, values = parse(settings.objective)
    if ":" not in name:
        _from_settings(_built_in(Objective, name), settings, values)
    known = Adjoint.known().get(parse(settings.adjoint)[0])
    if settings.micro_batch and known and known.keeps_graph:
        raise ConfigError(
            f"micro_batch cannot be combined with {settings.adjoint}.",
            "Choose the back-gradient adjoint, or leave micro_batch out.",
        )


def check_meaning(seam: type[Seam], settings: Any) -> None:
    """Refuses a setting that belongs to another implementation than the one that is named."""
    kind = _built_in(seam, parse(getattr(settings, seam.setting()))[0])
    for name in seam.names():
        for setting in seam.implementation(name).settings.values():
            if setting not in kind.settings.values() and _optional(settings, setting):
                raise ConfigError(
                    f"{setting} has no meaning for the {kind.name} {seam.seam}.",
                    f"Set {seam.setting()} to {name}, or leave {setting} out.",
                )


def settings_of(*objects: Seam) -> dict[str, Any]:
    """The settings that name these objects."""
    return {name: value for one in objects for name, value in one.as_settings().items()}


def _built_in(seam: type[S], name: str) -> type[S]:
    """The built-in implementation that a setting names."""
    if name not in seam.names():
        raise seam.unknown(name)
    return seam.implementation(name)


def _from_settings(kind: type[S], settings: Any, values: Record) -> S:
    """An object of a built-in class, with the fields that other settings hold."""
    taken = {field: getattr(settings, setting) for field, setting in kind.settings.items()}
    try:
        return kind.from_values({n: v for n, v in taken.items() if v is not None} | values)
    except ConfigError:
        missing = [s for f, s in kind.settings.items() if taken[f] is None and _required(kind, f)]
        if missing:
            raise ConfigError(
                f"The {kind.name} {kind.seam} needs {missing[0]}.", f"Set {missing[0]}."
            ) from None
        raise


def import_own(settings: Any) -> dict[str, Any]:
    """Imports the code that some settings name: the implementations that files name are then known.

    Returns:
        What was found, by setting.
    """
    named = {setting: getattr(settings, setting, None) for setting in SEAMS}
    given = {setting: text for setting, text in named.items() if text and ":" in text}
    return {setting: _own(SEAMS[setting], parse(text)[0]) for setting, text in given.items()}


def _own(seam: type[Seam], reference: str) -> Any:
    """A user's own implementation: its class, or an object of it."""
    if not reference.rpartition(":")[0].endswith(".py") and reference in seam.known():
        return seam.implementation(reference)
    found: Any = Wanted(seam.seam, "Class", _members, ConfigError).import_from(reference)
    if isinstance(found, type) and issubclass(found, seam):
        return found.register(reference)
    if isinstance(found, seam):
        type(found).register(reference)
        return found
    if seam is Objective and callable(found) and not isinstance(found, type):
        function: Any = found
        return OwnObjective(function, reference)
    raise ConfigError(
        f"{reference} is not an implementation of {seam.__name__}.",
        f"Derive a class of dd.{seam.__name__}: docs/extending.md shows how.",
    )


def _members(place: object) -> list[str]:
    """The names of what a module defines."""
    own = getattr(place, "__name__", None)
    members = getattr(place, "__dict__", {}).items()
    return [name for name, value in members if getattr(value, "__module__", None) == own]


def _changed(kind: type[Seam], settings: Any) -> dict[str, Any]:
    """The fields that a user's own class inherits, where their settings are not the defaults."""
    defaults = {f.name: f.default for f in dataclasses.fields(settings)}
    values = {field: (getattr(settings, s), defaults[s]) for field, s in kind.settings.items()}
    return {field: value for field, (value, default) in values.items() if value != default}


def _optional(settings: Any, setting: str) -> bool:
    """Whether a setting that is empty by default has been given."""
    default = next(f.default for f in dataclasses.fields(settings) if f.name == setting)
    return default is None and getattr(settings, setting) is not None


def _required(kind: type[Seam], field: str) -> bool:
    found: Any = kind
    return any(
        f.name == field and f.default is dataclasses.MISSING for f in dataclasses.fields(found)
    )
