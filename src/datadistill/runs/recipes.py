"""Recipes: whole experiments as YAML files, those of this package and a user's own."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ConfigError, did_you_mean, printable
from ..hints import command
from .calls.presets import Preset, preset_settings
from .config import RunConfig, config_from
from .store.yaml_files import read_yaml

SECTIONS = ("paper", "best")
"""What a recipe may have below the name of a preset: settings that hold with it alone."""
FOLDER = Path(__file__).parents[1] / "recipes"


@dataclass(frozen=True)
class Recipe:
    """A named configuration.

    Attributes:
        name: Its name, which is that of its file.
        description: What it does, and what the paper reports for it.
        config: Its settings.
        path: Its file.
    """

    name: str
    description: str
    config: RunConfig
    path: Path


def recipe_names() -> list[str]:
    """The recipes of this package."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def describe_recipe(name: str) -> str:
    """What a recipe of this package does; its settings are not checked, which would need torch."""
    return _description(read_yaml(recipe_file(name)))


def recipe_file(name: str) -> Path:
    """The file of a recipe of this package by its name, or any YAML file, which is checked."""
    return FOLDER / f"{name}.yaml" if name in recipe_names() else read_recipe(name).path


NOTHING: Mapping[str, Any] = {}


def read_recipe(name: str, preset: Preset = "fast", given: Mapping[str, Any] = NOTHING) -> Recipe:
    """Reads a recipe of this package by its name, or any YAML file of settings by its path.

    Args:
        name: Name of a recipe, or path of a YAML file.
        preset: Settings for a purpose: those of the recipe (fast), or the preset's own with what
            the recipe has below its name.
        given: Settings that will override the recipe, which the preset is adapted to.
    """
    path = Path(name)
    if path.suffix not in (".yaml", ".yml"):
        if name not in recipe_names():
            raise ConfigError(
                f"There is no recipe {name!r}.{did_you_mean(name, recipe_names())}",
                f"{command('recipes')} lists them; a file of settings must end in .yaml.",
            )
        path = FOLDER / f"{name}.yaml"
    settings = read_yaml(path)
    _check_printable(settings, path)
    description = _description(settings)
    settings.pop("description", None)
    sections = {name: _section(settings, name, path) for name in SECTIONS}
    settings |= preset_settings(preset, {**settings, **given}) | sections.get(preset, {})
    return Recipe(path.stem, description, config_from(settings, str(path)), path)


def _section(settings: dict[str, Any], name: str, path: Path) -> dict[str, Any]:
    """Takes the settings below a name out of a recipe."""
    section = settings.pop(name, {})
    if not isinstance(section, dict):
        raise ConfigError(
            f"{path}: {name} is {section!r}.", f"Put settings below {name}, or leave it out."
        )
    return section


def _description(settings: dict[str, Any]) -> str:
    return " ".join(str(settings.get("description", "")).split())


def _check_printable(settings: dict[str, Any], path: Path) -> None:
    """Refuses control characters: values become defaults, which ``--help`` shows."""
    for name, value in settings.items():
        if any(text != printable(text) for text in _texts([name, value])):
            raise ConfigError(
                f"{path}: {name} has a control character: {value!r}.", "Remove the character."
            )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = [*value.keys(), *value.values()]
    if isinstance(value, list):
        for one in value:
            yield from _texts(one)
    else:
        yield str(value)
