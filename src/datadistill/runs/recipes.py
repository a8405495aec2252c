"""Recipes: whole experiments as YAML files, those of this package and a user's own."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..errors import ConfigError, did_you_mean, printable
from ..hints import command
from .config import PAPER, RunConfig, config_from
from .store.yaml_files import read_yaml

Preset = Literal["fast", "paper"]
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


def read_recipe(name: str, preset: Preset = "fast") -> Recipe:
    """Reads a recipe of this package by its name, or any YAML file of settings by its path.

    Args:
        name: Name of a recipe, or path of a YAML file.
        preset: Outer schedule: that of the recipe, or the paper's with the settings that the
            recipe has below ``paper``.
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
    paper = settings.pop("paper", {})
    if not isinstance(paper, dict):
        raise ConfigError(
            f"{path}: paper is {paper!r}.", "Put settings below paper, or leave it out."
        )
    if preset == "paper":
        settings |= PAPER | paper
    return Recipe(path.stem, description, config_from(settings, str(path)), path)


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
