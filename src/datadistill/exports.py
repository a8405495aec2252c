"""Packages whose names are imported when they are first used, not with the package.

torch takes two seconds to import, which ``datadistill --help`` should not wait for. A package lists
its names once, as imports that only type checkers carry out::

    if TYPE_CHECKING:
        from .config import RunConfig
    else:
        __getattr__, __dir__ = on_first_use(__name__)

    __all__ = ["RunConfig"]
"""

import ast
import functools
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from typing import Any


def on_first_use(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a package, which are called as PEP 562 says.

    Args:
        package: The name of the package. What it imports below ``if TYPE_CHECKING:`` and its own
            modules are its attributes.
    """

    def get(name: str) -> Any:
        module = sys.modules[package]
        home = _homes(package).get(name)
        if home is not None:
            value = _imported_from(*home, package)
            # A package that bears the name of its function, as report does, can itself be called.
            value = sys.modules.get(f"{package}.{name}", value)
            setattr(module, name, value)  # the next time it is there
            return value
        if not name.startswith("_") and importlib.util.find_spec(f"{package}.{name}"):
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=module)

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *_homes(package)})

    return get, names


@functools.cache
def _homes(package: str) -> dict[str, tuple[str, str]]:
    """Where each name of a package comes from, by its own source: a module, and the name there."""
    loader: Any = sys.modules[package].__loader__
    return dict(_imports(loader.get_source(package)))


def _imported_from(home: str, name: str, package: str) -> Any:
    """What ``from home import name`` gives in a package: an attribute, or a module."""
    module = importlib.import_module(home, package)
    if hasattr(module, name):
        return getattr(module, name)
    return importlib.import_module(f"{module.__name__}.{name}")


def _imports(source: str) -> Iterator[tuple[str, tuple[str, str]]]:
    for block in ast.parse(source).body:
        match block:
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), body=body):
                for statement in body:
                    match statement:
                        case ast.ImportFrom(module=str(home), names=names, level=level):
                            for one in names:
                                yield one.asname or one.name, ("." * level + home, one.name)
                        case _:
                            pass  # modules of the package itself
            case _:
                pass
