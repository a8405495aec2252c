"""Python objects by reference: ``package.module:name`` or ``path/to/file.py:name``."""

import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType

from .errors import DataDistillError, did_you_mean


@dataclass(frozen=True)
class Wanted:
    """What a reference should name; used in error messages.

    Attributes:
        kind: What it is, e.g. ``network``.
        attribute: What stands after the colon, e.g. ``Class``.
        known: Returns the names of everything of that kind in a module.
        error: The error to raise.
    """

    kind: str
    attribute: str
    known: Callable[[object], list[str]]
    error: type[DataDistillError]

    def import_from(self, reference: str) -> object:
        """Imports the object that a reference names.

        Args:
            reference: ``package.module:name`` or ``path/to/file.py:name``.
        """
        place, _, path = reference.rpartition(":")
        if not place or not path:
            raise self.error(
                f"{reference!r} does not name a {self.kind}.",
                f"Write it as package.module:{self.attribute} or path/to/file.py:{self.attribute}.",
            )
        is_file = place.endswith(".py")
        found: object = self._from_file(place) if is_file else self._from_module(place)
        for name in path.split("."):
            if not hasattr(found, name):
                known = self.known(found)
                raise self.error(
                    f"{place} has no {path!r}.{did_you_mean(name, known)}",
                    f"It has {', '.join(known) or f'no {self.kind}s'}.",
                )
            found = getattr(found, name)
        return found

    def _from_module(self, name: str) -> ModuleType:
        if "" not in sys.path:  # like `python -m`: modules in the working directory are found
            sys.path.insert(0, "")
        importlib.invalidate_caches()
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name and (error.name == name or name.startswith(f"{error.name}.")):
                raise self.error(
                    f"There is no Python module {error.name!r}.",
                    "Install it, run from the folder that contains it, or name the file: "
                    f"path/to/file.py:{self.attribute}.",
                ) from error
            raise self._broken(name, error) from error
        except (Exception, SystemExit) as error:
            raise self._broken(name, error) from error

    def _from_file(self, place: str) -> ModuleType:
        path = _path(place).resolve()
        if not path.is_file():
            raise self.error(
                f"There is no file {place}.",
                f"Give its path relative to {Path.cwd()}, or its full path.",
            )
        if str(path.parent) not in sys.path:  # like `python file.py`: modules beside it are found
            sys.path.append(str(path.parent))
        name = _free_name(path)
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise self.error(
                f"{place} is not a Python file.",
                f"Name one, as path/to/file.py:{self.attribute}.",
            )
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
            raise self._broken(place, error) from error
        return module

    def _broken(self, place: str, error: BaseException) -> DataDistillError:
        return self.error(
            f"{place} cannot be imported: {type(error).__name__}: {error}",
            "Correct it so that Python can import it.",
        )


def is_reference(text: str) -> bool:
    """Whether a text has the form of a reference to Python code: a place, a colon and a name."""
    place, _, path = text.rpartition(":")
    names = path.split(".")
    is_place = place.endswith(".py") or all(name.isidentifier() for name in place.split("."))
    return bool(place) and is_place and all(name.isidentifier() for name in names)


def absolute_reference(reference: str) -> str:
    """The same reference with the absolute path of its file, if it names a file."""
    place, _, path = reference.rpartition(":")
    if not place.endswith(".py"):
        return reference
    return f"{_path(place).absolute()}:{path}"


def functions_of(place: object) -> list[str]:
    """The names of the functions that a module defines."""
    own = getattr(place, "__name__", None)
    members = getattr(place, "__dict__", {}).items()
    return [n for n, v in members if isinstance(v, FunctionType) and v.__module__ == own]


def _path(place: str) -> Path:
    return Path(os.path.expanduser(place))  # noqa: PTH111 - of no known home it stays as it is


def _free_name(path: Path) -> str:
    """The file's own name, unless another module has it, as for a user's ``random.py``."""
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
