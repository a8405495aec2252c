"""What a user passes to a call in Python, checked by its annotations before it is used."""

import functools
import inspect
import numbers
import os
import types
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from .errors import ConfigError, did_you_mean

Call = TypeVar("Call", bound=Callable[..., Any])
KINDS: dict[Any, tuple[type, str]] = {
    int: (numbers.Integral, "a whole number"),
    float: (numbers.Real, "a number"),
    str: (str, "a text"),
    Path: (os.PathLike, "a path"),
}
"""What stands for a type, and what it is called; a bool is no number."""


def typed(call: Call) -> Call:
    """Refuses arguments of other types than the annotations of a function or a class say."""
    if isinstance(call, type):
        call.__init__ = typed(call.__init__)
        return call  # pyright: ignore[reportReturnType]
    parameters, hints = [*inspect.signature(call).parameters], _hints_of(call)

    @functools.wraps(call)
    def checking(*arguments: Any, **named: Any) -> Any:
        for name, value in [*zip(parameters, arguments, strict=False), *named.items()]:
            check(value, hints().get(name, Any), name)
        return call(*arguments, **named)

    return checking  # pyright: ignore[reportReturnType]


def _hints_of(call: Callable[..., Any]) -> Callable[[], dict[str, Any]]:
    """The annotation of each argument that has a name; read when they are first needed."""
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    named = {n for n, one in inspect.signature(call).parameters.items() if one.kind not in several}
    return functools.cache(lambda: {n: h for n, h in get_type_hints(call).items() if n in named})


def check(value: object, kind: Any, name: str) -> None:
    """Refuses a value that is not of a type."""
    if _fits(value, kind):
        return
    names = [one for part in _parts(kind) if get_origin(part) is Literal for one in get_args(part)]
    if isinstance(value, str) and names:
        check_choice(value, name, names)
    shown = repr(value) if isinstance(value, str | int | float) else kind_of(value)
    wanted = " or ".join(dict.fromkeys(_called(part) for part in _parts(kind)))
    raise ConfigError(f"{name} is {shown[:100]}.", f"Pass {wanted}.")


def check_choice(given: str, name: str, choices: Iterable[str]) -> None:
    """Refuses what is none of some names."""
    names = [*choices]
    if given not in names:
        raise ConfigError(
            f"There is no {name} {given[:100]!r}.{did_you_mean(given, names)}",
            f"Choose one of: {', '.join(names)}.",
        )


def kind_of(given: object) -> str:
    """What something is: the class Mine, a lambda, of type int."""
    if isinstance(given, type):
        return f"the class {given.__name__}"
    if inspect.isroutine(given):
        name = getattr(given, "__name__", "")
        return "a lambda" if name == "<lambda>" else f"the function {name}"
    return f"of type {type(given).__name__}"


def _parts(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def _fits(value: object, kind: Any) -> bool:
    if len(parts := _parts(kind)) > 1:
        return any(_fits(value, part) for part in parts)
    origin = get_origin(kind)
    if kind is Any:
        return True
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in get_args(kind))
    if kind in KINDS:
        return isinstance(value, KINDS[kind][0]) and not isinstance(value, bool)
    if origin is Sequence:  # an array is none for Python; a text is, but nobody means its letters
        if not isinstance(value, Collection) or isinstance(value, str | bytes):
            return False
        several: Collection[object] = value
        return all(_fits(one, *get_args(kind)) for one in several)
    found = type(None) if kind is None else origin or kind
    return not isinstance(found, type) or isinstance(value, found)


def _called(kind: Any) -> str:
    if kind in KINDS:
        return KINDS[kind][1]
    if get_origin(kind) is Literal:
        return f"one of {', '.join(map(str, get_args(kind)))}"
    if kind in (None, type(None)):
        return "None"
    if get_origin(kind) is Sequence:
        return f"several, each {' or '.join(map(_called, _parts(*get_args(kind))))}"
    found = get_origin(kind) or kind
    name = getattr(found, "__name__", str(found))
    return "a function" if name == "Callable" else f"an object of {name}"
