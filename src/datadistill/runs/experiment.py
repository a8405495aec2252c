"""From the names in a configuration to the data and the network that they name, loaded once."""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from .. import data, models
from ..core.device import resolve_device
from ..core.objective import Objective
from ..core.seam import parse
from ..core.values import one_line
from ..data import LabelledData
from ..data.labels import as_classes, check_several_classes
from ..errors import ConfigError, TeamError
from ..hints import command, flag
from ..importing import absolute_reference
from .config import RunConfig
from .distillation import Distillation
from .preparation import prepare
from .seams import SEAMS, make
from .team.processes import Processes

CODE_SETTINGS = ("model", "data", *SEAMS)
"""Settings that can name Python code, as ``file.py:Class`` or ``package.module:function``."""

PATH_SETTINGS = ("data",)
"""Those of them that can be a path, which on Windows may begin with a drive letter."""

IN_PYTHON = "If it was started in Python, resume it there: make the same dd.distill call again."


@dataclass(frozen=True)
class Experiment:
    """A configuration with the data and the network that it names.

    Attributes:
        config: The settings.
        train: All training data.
        test: The test data.
        module: The network.
    """

    config: RunConfig
    train: LabelledData
    test: LabelledData
    module: nn.Module

    __repr__ = one_line

    def prepare(self, team: Processes | None = None) -> Distillation:
        """The distillation, for this process alone or as one of a team; reads no data again."""
        return prepare(self.config, self.train, self.module, team=team)


def load(config: RunConfig) -> Experiment:
    """Reads the data and makes the network that a configuration names."""
    resolve_device(config.device)  # before the data, which may take long
    train, test = data.load(
        config.data,
        config.data_dir,
        size=config.size,
        channels=config.channels,
        augment=config.augment,
        normalization=config.normalization,
    )
    if make(Objective, config).has_classes:
        train = as_classes(train)
        check_several_classes(train)
    module = models.find_for(config.model, train.input_shape, train.classes, config.model_args)
    return Experiment(config, train, test, module)


def check_no_code(config: RunConfig, where: str, said: Mapping[str, str | None]) -> None:
    """Refuses Python code that a file names: only what the user names is run.

    Args:
        config: Settings from a file.
        where: Which file.
        said: What the user has named, by setting.
    """
    for setting, value in _unnamed(config, said):
        raise unnamed_code(where, setting, value, in_memory=not _can_be_found(config.data))


def unnamed_code(where: str, setting: str, value: str, *, in_memory: bool = False) -> ConfigError:
    """The error for Python code that only a file names.

    Args:
        where: Which file.
        setting: The setting that names it.
        value: Its name.
        in_memory: Whether it was used with data in memory, so that no command can use it again.
    """
    what = f"{where} names Python code, {value}. Code that only a file names is not run."
    place = value.rpartition(":")[0]
    in_session = place == "__main__" or "<" in value  # a script, a notebook, inside a function
    if in_memory or in_session:
        return ConfigError(what, IN_PYTHON)
    own_folder = place.endswith(".py") and not Path(place).is_file()
    where_from = "go to the folder that contains it and " if own_folder else ""
    named = shlex.join([flag(setting), value])
    return ConfigError(what, f"If you trust it, {where_from}name it yourself: {named}")


def code_flags(config: object) -> list[str]:
    """The words by which a command names the Python code of a run."""
    return [word for setting, value in _unnamed(config, {}) for word in (flag(setting), value)]


def repeat_flags(config: RunConfig) -> list[str]:
    """The same for another run from any folder: with paths and the values of fields."""
    words: list[str] = []
    for setting in CODE_SETTINGS:
        value: str | None = getattr(config, setting)
        if value is not None and names_code(setting, value):
            reference, bracket, values = value.partition("(")
            words += [flag(setting), f"{absolute_reference(reference)}{bracket}{values}"]
    return words


def check_findable(config: RunConfig, where: str) -> None:
    """Refuses to look for data that were in memory: their name could be that of any file."""
    if not _can_be_found(config.data):
        raise ConfigError(
            f"{where} has data {config.data!r}, which are not built in and have no path.", IN_PYTHON
        )


def _can_be_found(name: str) -> bool:
    """Whether a name of data is more than that of data in memory."""
    known = name in data.DATA_SETS or names_code("data", name) or is_lasting(name)
    return known or Path(name).exists()  # earlier versions kept relative paths


def is_lasting(name: str) -> bool:
    """Whether a path of data is the same from every working directory."""
    return Path(name).is_absolute() or name.startswith("~")


def check_named(config: object, named: Mapping[str, str | None]) -> None:
    """Refuses Python code that was received, and that this process's user has not named.

    Args:
        config: Settings from process 0.
        named: What the user has named, by setting.
    """
    for setting, value in _unnamed(config, named):
        raise TeamError(
            f"Process 0 names Python code that this process was not told of: {value}.",
            f"Start all processes with the same {flag(setting)}.",
        )


def _unnamed(config: object, said: Mapping[str, str | None]) -> Iterator[tuple[str, str]]:
    """The settings that name Python code which the user has not named."""
    for setting in CODE_SETTINGS:
        value: str | None = getattr(config, setting, None)
        if value is not None and names_code(setting, value):
            reference, _ = parse(value)
            if reference != parse(said.get(setting) or "")[0]:
                yield setting, reference


def check_code_is_used(config: RunConfig, where: str, said: Mapping[str, str | None]) -> None:
    """Refuses Python code that the user names where a file names none: it would not be used.

    Args:
        config: Settings from a file.
        where: Which file.
        said: What the user has named, by setting.
    """
    for setting in CODE_SETTINGS:
        own, value = getattr(config, setting), said.get(setting)
        if value is not None and value != own and not names_code(setting, own):
            again = command("distill", "RECIPE", flag(setting), value)
            raise ConfigError(
                f"{where} has {setting} {own}; a run that is resumed cannot change it to {value}.",
                f"Leave {flag(setting)} out, or start another run: {again}",
            )


def names_code(setting: str, value: str | None) -> bool:
    """Whether a setting names Python code: it has a colon, besides that of a Windows drive."""
    if value is None:
        return False
    if setting in PATH_SETTINGS:
        value = re.sub(r"^[A-Za-z]:[\\/]", "", value)
    return ":" in value
