"""Constructor arguments of networks: from text, and against what a class takes."""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence

from ..errors import ConfigError, ModelError, did_you_mean

Value = int | float | bool | str
"""What a constructor argument may be."""


def parse_arguments(texts: Sequence[str]) -> dict[str, Value]:
    """Reads constructor arguments that are written as ``name=value``.

    Args:
        texts: For example ``["width=64", "slope=0.1", "bias=false", "activation=relu"]``.
            Numbers, ``true`` and ``false`` become what they look like; a value in quotes, and
            any other, is text.
    """
    arguments: dict[str, Value] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name.isidentifier():
            raise ConfigError(
                f"{text!r} is not an argument of a network.",
                "Write it as name=value, e.g. width=64.",
            )
        if name in arguments:
            raise ConfigError(
                f"The argument {name!r} of the network is given twice.", "Give it once."
            )
        arguments[name] = _value(value.strip())
    return arguments


def check_arguments(make: Callable[..., object], name: str, arguments: Mapping[str, Value]) -> None:
    """Refuses arguments that a class does not take, and the lack of those that it needs."""
    try:
        parameters = inspect.signature(make).parameters.values()
    except (TypeError, ValueError):  # written in C: it will judge for itself
        return
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    anything = any(p.kind is p.VAR_KEYWORD for p in parameters)
    for given in arguments:
        if given not in named and not anything:
            raise ModelError(
                f"{name} takes no argument {given!r}.{did_you_mean(given, named)}",
                f"It takes {', '.join(named) or 'none'}.",
            )
    varying = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    missing = [
        p.name
        for p in parameters
        if p.default is p.empty and p.kind not in varying and p.name not in arguments
    ]
    if missing:
        raise ModelError(
            f"{name} cannot be made without {', '.join(map(repr, missing))}.",
            "Give each as name=value, or give it a default in the class.",
        )


def _value(text: str) -> Value:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for number in (int, float):
        try:
            value = number(text)
        except ValueError:
            continue
        return value if math.isfinite(value) else text
    return text
