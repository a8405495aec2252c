"""A user's own network: its class, from ``package.module:Class`` or ``path/to/file.py:Class``."""

import importlib
import importlib.util
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from torch import nn

from ..errors import ModelError, did_you_mean


def locate(reference: str) -> Callable[..., object]:
    """Imports the class, or the function that makes a network, that a reference names."""
    found = _import(reference, "network", "Class", _networks)
    if isinstance(found, nn.Module) or not callable(found):
        raise ModelError(
            f"{reference!r} is an object of the type {type(found).__name__}.",
            "Name a class that derives from torch.nn.Module, or a function that returns one.",
        )
    return found


def locate_function(reference: str) -> Callable[..., Any]:
    """Imports the function that a reference names."""
    found = _import(reference, "function", "function", _functions)
    if isinstance(found, type) or not callable(found):
        raise ModelError(
            f"{reference!r} is not a function.", "Name a function of logits and labels."
        )
    return found


def locate_object(reference: str) -> object:
    """Imports whatever a reference names."""
    return _import(reference, "class or function", "name", _members)


def _import(
    reference: str, what: str, attribute: str, known: Callable[[object], list[str]]
) -> object:
    """Imports whatever a reference names.

    Args:
        reference: ``package.module:name`` or ``path/to/file.py:name``.
        what: What it should be, for errors.
        attribute: What stands behind the colon, for errors.
        known: What else of that kind a module has, for errors.
    """
    place, _, path = reference.rpartition(":")
    if not place or not path:
        raise ModelError(
            f"{reference!r} does not name a {what}.",
            f"Write it as package.module:{attribute} or path/to/file.py:{attribute}.",
        )
    found: object = _from_file(place) if place.endswith(".py") else _from_module(place)
    for name in path.split("."):
        if not hasattr(found, name):
            raise ModelError(
                f"{place} has no {path!r}.{did_you_mean(name, known(found))}",
                f"It has {', '.join(known(found)) or f'no {what}s'}.",
            )
        found = getattr(found, name)
    return found


def _from_module(name: str) -> ModuleType:
    if "" not in sys.path:  # as `python -m` does: modules beside the user are found
        sys.path.insert(0, "")
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (error.name == name or name.startswith(f"{error.name}.")):
            raise ModelError(
                f"There is no Python module {error.name!r}.",
                "Install it, run from the folder that holds it, or name the file: "
                "path/to/file.py:Class.",
            ) from error
        raise _broken(name, error) from error
    except (Exception, SystemExit) as error:
        raise _broken(name, error) from error


def _from_file(place: str) -> ModuleType:
    path = Path(place).expanduser().resolve()
    if not path.is_file():
        raise ModelError(
            f"There is no file {place}.",
            f"Give its path from the folder {Path.cwd()}, or the whole path.",
        )
    if str(path.parent) not in sys.path:  # as `python file.py` does: modules beside it are found
        sys.path.append(str(path.parent))
    name = _free_name(path)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ModelError(f"{place} is not a Python file.", "Name one, as path/to/file.py:Class.")
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(name)
    sys.modules[name] = module  # so that the module's own classes can be copied
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before
        raise _broken(place, error) from error
    return module


def _free_name(path: Path) -> str:
    """The file's own name, unless that is another module's, as for a user's ``random.py``."""
    name = re.sub(r"\W", "_", path.stem)
    while not _is_free(name, path):
        name += "_"
    return name


def _is_free(name: str, path: Path) -> bool:
    if name in sys.modules:
        origin = getattr(sys.modules[name], "__file__", None)
    else:
        spec = importlib.util.find_spec(name)
        origin = spec.origin if spec else path
    return origin is not None and Path(origin).resolve() == path


def _networks(place: object) -> list[str]:
    return [
        name
        for name, value in getattr(place, "__dict__", {}).items()
        if isinstance(value, type)
        and issubclass(value, nn.Module)
        and not value.__module__.startswith("torch.")
    ]


def _functions(place: object) -> list[str]:
    own = getattr(place, "__name__", None)
    members = getattr(place, "__dict__", {}).items()
    return [n for n, v in members if isinstance(v, FunctionType) and v.__module__ == own]


def _members(place: object) -> list[str]:
    own = getattr(place, "__name__", None)
    members = getattr(place, "__dict__", {}).items()
    return [n for n, v in members if getattr(v, "__module__", None) == own]


def _broken(place: str, error: BaseException) -> ModelError:
    return ModelError(
        f"{place} cannot be imported: {type(error).__name__}: {error}",
        "Correct it: it must run when Python imports it.",
    )
