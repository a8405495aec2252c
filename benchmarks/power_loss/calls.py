"""Every call to the operating system in one folder: watched, recorded or made to fail."""

import contextlib
import errno
import io
import os
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

ERRORS = (errno.ENOSPC, errno.EIO, errno.EDQUOT)
BY_PATH = ("stat", "lstat", "scandir", "listdir", "mkdir", "rmdir", "unlink", "remove", "replace")
BY_DESCRIPTOR = ("write", "fsync", "ftruncate", "read")
CHANGES = ("open", "mkdir", "rmdir", "unlink", "remove", "replace", "write", "fsync", "ftruncate")
"""Calls that a full or failing disk refuses."""


@dataclass
class Calls:
    """Stands between Python and the operating system for the files of one folder.

    Attributes:
        folder: The folder.
    """

    folder: Path
    _open: dict[int, Path] = field(default_factory=dict[int, Path])

    def before(self, name: str, path: Path) -> None:
        """Called before every call; what it raises, the call raises."""

    def after(self, name: str, path: Path, arguments: tuple[Any, ...], result: Any) -> None:
        """Called after every call."""

    @contextlib.contextmanager
    def watched(self) -> Generator[None]:
        """Puts itself between."""
        with contextlib.ExitStack() as stack:
            for name in BY_PATH:
                stack.enter_context(patch.object(os, name, self._by_path(name)))
            for name in BY_DESCRIPTOR:
                stack.enter_context(patch.object(os, name, self._by_descriptor(name)))
            stack.enter_context(patch.object(os, "open", self._opening()))
            stack.enter_context(patch.object(os, "close", self._closing()))
            stack.enter_context(patch.object(io, "open", self._reading()))
            yield

    def _inside(self, path: Any) -> Path | None:
        if not isinstance(path, str | os.PathLike):
            return None
        place = Path(os.fsdecode(path))
        return place if place.is_relative_to(self.folder) else None

    def _watch(self, name: str, real: Callable[..., Any], path: Path, *arguments: Any) -> Any:
        self.before(name, path)
        result = real(*arguments)
        self.after(name, path, arguments, result)
        return result

    def _by_path(self, name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(path: Any = ".", *arguments: Any, **options: Any) -> Any:
            place = self._inside(path)
            if place is None:
                return real(path, *arguments, **options)
            return self._watch(name, lambda *a: real(*a, **options), place, path, *arguments)

        return call

    def _by_descriptor(self, name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(descriptor: int, *arguments: Any) -> Any:
            place = self._open.get(descriptor)
            if place is None:
                return real(descriptor, *arguments)
            return self._watch(name, real, place, descriptor, *arguments)

        return call

    def _opening(self) -> Callable[..., int]:
        real = os.open

        def call(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
            place = self._inside(path)
            if place is None:
                return real(path, flags, *arguments, **options)
            descriptor = self._watch("open", real, place, path, flags, *arguments)
            self._open[descriptor] = place
            return descriptor

        return call

    def _closing(self) -> Callable[[int], None]:
        real = os.close

        def call(descriptor: int) -> None:
            place = self._open.pop(descriptor, None)
            real(descriptor)
            if place:
                self.before("close", place)  # what fails has closed it nevertheless

        return call

    def _reading(self) -> Callable[..., Any]:
        real = io.open

        def call(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
            place = self._inside(file)
            if place is None:
                return real(file, mode, *arguments, **options)
            assert set(mode) <= set("rbt"), f"{place} is written beside datadistill.files"
            return self._watch("open to read", real, place, file, mode, *arguments)

        return call


@dataclass
class Failing(Calls):
    """Lets the n-th call fail.

    Attributes:
        nth: Which, from 1; none if 0.
        number: With which error.
        forever: Whether every later change fails too, as on a disk that stays full.
        count: How many calls there were.
        failed: The call that failed first.
    """

    nth: int = 0
    number: int = errno.ENOSPC
    forever: bool = False
    count: int = 0
    failed: str = ""

    def before(self, name: str, path: Path) -> None:
        """Counts, and fails."""
        self.count += 1
        again = self.forever and self.failed and name in CHANGES
        if self.count == self.nth or again:
            self.failed = self.failed or f"{name} {path.relative_to(self.folder)}"
            named = name not in (*BY_DESCRIPTOR, "close")
            raise OSError(self.number, os.strerror(self.number), str(path) if named else None)
