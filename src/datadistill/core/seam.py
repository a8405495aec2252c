"""Seams: the places where an implementation can be replaced by another.

An implementation is found by its name and written to files as a record: plain data from which the
same object can be made again.
"""

import ast
import importlib
import json
import pkgutil
import re
from abc import ABC
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, Self

from ..errors import ConfigError, did_you_mean

Record = dict[str, Any]
"""``{"name": …}`` with all that the object depends on, in the types of JSON."""


class Seam(ABC):
    """A kind of object with many implementations, each found by its name.

    A class that gives ``seam`` opens a seam; the classes below it are its implementations. One
    with a ``name`` is built in. Any other is called by where it is defined,
    ``package.module:Class``, or by the reference under which the user named it. Example::

        class UpdateRule(Seam, seam="update rule"): ...

        @dataclass(frozen=True)
        class Momentum(UpdateRule, name="momentum"):
            momentum: float = 0.9

    Attributes:
        seam: What this kind of object is called in messages.
        name: What files and flags call the implementation.
        settings: The run's settings from which a built-in implementation takes its fields:
            field → setting.
        wraps: Whether it is made around something else, and so cannot be named alone.
    """

    seam: ClassVar[str]
    name: ClassVar[str]
    settings: ClassVar[Mapping[str, str]] = {}
    wraps: ClassVar[bool] = False
    _implementations: ClassVar[dict[str, type["Seam"]]]

    def __init_subclass__(
        cls, *, seam: str = "", name: str = "", aliases: Iterable[str] = (), **more: Any
    ) -> None:
        super().__init_subclass__(**more)
        if seam:
            cls.seam, cls._implementations = seam, {}
            return
        for alias in (*aliases, name or f"{cls.__module__}:{cls.__qualname__}"):
            cls.register(alias)

    @classmethod
    def register(cls, name: str) -> type[Self]:
        """Makes this implementation known by a name; files call it so from then on."""
        cls.name = name
        cls._implementations[name] = cls
        return cls

    @classmethod
    def setting(cls) -> str:
        """The setting of a run that names an implementation."""
        return cls.seam.replace(" ", "_")

    @classmethod
    def known(cls) -> dict[str, type[Self]]:
        """All implementations that have been imported."""
        return cls._implementations  # pyright: ignore[reportReturnType]

    @classmethod
    def names(cls) -> list[str]:
        """The built-in implementations that a setting can name."""
        return [n for n, kind in cls._implementations.items() if ":" not in n and not kind.wraps]

    @classmethod
    def is_built_in(cls) -> bool:
        """Whether this implementation has a name of its own, other than where it is defined."""
        return ":" not in cls.name

    @classmethod
    def implementation(cls, name: str) -> type[Self]:
        """The class that a name stands for; runs no code.

        A user's own class is known once it has been imported.
        """
        if name in cls.known():
            return cls.known()[name]
        if ":" in name:
            # mine.py:Rule, named on a command line, is mine:Rule, imported in Python.
            for other in reversed(cls.known()):
                if ":" in other and _short(other) == _short(name):
                    return cls.known()[other]
            raise ConfigError(
                f"The {cls.seam} {name} has not been imported, and files never import code.",
                f"Import it first, or name it with --{cls.seam.replace(' ', '-')} {name}.",
            )
        raise cls.unknown(name)

    @classmethod
    def unknown(cls, name: str) -> ConfigError:
        """The error for a name that no implementation has."""
        return ConfigError(
            f"There is no {cls.seam} {name!r}.{did_you_mean(name, cls.names())}",
            f"Choose one of: {', '.join(cls.names())}; or your own as package.module:Class or "
            "file.py:Class.",
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"  # dataclasses write one of their own, with their fields

    def record(self) -> Record:
        """Plain data from which :meth:`from_record` makes the same object again."""
        values = {f.name: getattr(self, f.name) for f in _fields(self)}
        return {"name": self.name, **values}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """The object of a record."""
        values = {name: value for name, value in record.items() if name != "name"}
        return cls.implementation(str(record.get("name", ""))).from_values(values)

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        """An object of this class from the values of its fields, as JSON has them."""
        known = {field.name: field for field in _fields(cls)}
        for name in values:
            if name not in known:
                raise ConfigError(
                    f"The {cls.seam} {cls.name} has no field {name!r}.",
                    f"It has {', '.join(known) or 'none'}.",
                )
        try:
            return cls(**{n: tuple(v) if isinstance(v, list) else v for n, v in values.items()})
        except TypeError as error:
            raise ConfigError(
                f"The {cls.seam} {cls.name} cannot be made of {dict(values)}: {error}",
                "Give all its fields, with values of the right type.",
            ) from None

    @property
    def text(self) -> str:
        """The record in one line: ``name``, or ``name(field=value, …)`` for a user's own."""
        values = {name: value for name, value in self.record().items() if name != "name"}
        if ":" not in self.name or not values:
            return self.name
        return f"{self.name}({', '.join(f'{n}={v!r}' for n, v in values.items())})"

    def as_settings(self) -> dict[str, Any]:
        """The settings of a run that name this object."""
        fields = {setting: getattr(self, field) for field, setting in self.settings.items()}
        return {self.setting(): self.text if ":" in self.name else self.name, **fields}

    def check_recordable(self) -> None:
        """Refuses an object that cannot be made again from its record."""
        what = f"The {self.seam} {self.name} cannot be recorded"
        remedy = "Make it a frozen dataclass of plain values, or write record() and from_values()."
        try:
            record = json.loads(json.dumps(self.record()))
        except (TypeError, ValueError) as error:
            raise ConfigError(f"{what}: {error}.", remedy) from None
        try:
            made = type(self).from_record(record)
            again = json.loads(json.dumps(made.record()))
        except Exception as error:
            raise ConfigError(f"{what}: {error}", remedy) from error
        if again != record:
            raise ConfigError(f"{what}: from_record() gives {again} for {record}.", remedy)
        if not self.is_built_in():
            # What is inherited of a built-in class may give that class's name.
            named, _ = parse(self.as_settings()[self.setting()])
            for name in (made.name, named):
                if name != self.name:
                    raise ConfigError(f"{what}: it would become {name}.", remedy)


def parse(text: str) -> tuple[str, Record]:
    """Splits ``name(field=value, …)`` into the name and the values of the fields."""
    name, bracket, arguments = text.partition("(")
    if not bracket:
        return text, {}
    try:
        match ast.parse(f"f({arguments}", mode="eval").body:
            case ast.Call(ast.Name(), [], given) if all(one.arg for one in given):
                return name, {str(one.arg): ast.literal_eval(one.value) for one in given}
            case _:
                pass
    except (SyntaxError, ValueError, TypeError):  # no expression, or no plain value
        pass
    except (MemoryError, RecursionError):  # nested without end
        pass
    raise ConfigError(
        f"{text[:200]!r} cannot be read.", "Write file.py:Class or file.py:Class(name=value, …)."
    )


def split_arguments(reference: str, arguments: Sequence[str] = ()) -> tuple[str, tuple[str, ...]]:
    """Takes the arguments out of the name of a network: ``convnet3(width=16)``.

    Args:
        reference: A name or ``file.py:Class``, with or without arguments in brackets.
        arguments: Further arguments, each as ``name=value``.

    Returns:
        The name alone, and all arguments as ``name=value``.
    """
    given = re.fullmatch(r"(.+?)(\((?:\s*\w+\s*=.*)?\))", reference)  # a folder may have brackets
    if not given:
        return reference, tuple(arguments)
    own = [f"{name}={value!r}" for name, value in parse(f"f{given[2]}")[1].items()]
    return given[1], (*own, *arguments)


def _short(reference: str) -> tuple[str, str]:
    """File or module and name of a reference, wherever the file is."""
    place, _, name = reference.rpartition(":")
    place = re.split(r"[/\\]", place)[-1].removesuffix(".py")
    return place.rpartition(".")[2], name


def discover(package: str, path: Iterable[str]) -> None:
    """Imports every module of a package, so that its implementations are known."""
    for module in sorted(pkgutil.iter_modules(path), key=lambda found: found.name):
        importlib.import_module(f"{package}.{module.name}")


def _fields(kind: object) -> list[Any]:
    """The fields of a dataclass that make it what it is."""
    return [f for f in fields(kind) if f.compare] if is_dataclass(kind) else []  # pyright: ignore[reportArgumentType]
