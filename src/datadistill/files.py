"""The cache folder, and writing files so that a reader never sees half of one.

Everything that must survive a crash is written by the functions below. The stages of a write are
functions of their own, in the order in which they happen, so that tests can stop a process, fail
a call or cut the power at each.
"""

import atexit
import contextlib
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from platformdirs import user_cache_path

from .errors import FileError
from .flock import in_use, is_stale
from .notices import warn_once

MARK = "datadistill-"
TEMPORARY = re.compile(rf"\..*\.{MARK}[0-9a-f]{{8}}(\.[^.]*)?")
"""The names of our temporary files, which nobody else gives."""
EARLIER = re.compile(
    r"\.(step-\d+|config|results|index|distilled|last|best|(train|held-out)-\d+-\d+)"
    r"\.[0-9a-f]{8}\.(safetensors|yaml|json|png)"
)
"""Those of earlier versions, in folders of our own."""

_BINARY = getattr(os, "O_BINARY", 0)  # of Windows

_guards: dict[Path, Callable[[], None]] = {}


def cache_folder() -> Path:
    """The folder for downloaded data sets and compiled code, e.g. ``~/.cache/datadistill``.

    A user without a home folder gets a private temporary one, which ends with the process.
    """
    try:
        found = user_cache_path("datadistill", appauthor=False, opinion=False)
    except RuntimeError:
        return _temporary_cache()
    # Versions of platformdirs differ: some name a folder that is called ~.
    return _temporary_cache() if found.parts[:1] == ("~",) else found


@cache
def _temporary_cache() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="datadistill-"))  # 0700
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    warn_once(
        "This user has no home folder: downloads and compiled code are kept in a temporary folder "
        "and lost at the end. Set HOME or XDG_CACHE_HOME to keep them."
    )
    return folder


def write_atomically(path: Path, content: bytes, *, make_folder: bool = True) -> None:
    """Writes a whole file or nothing: temporary file, fsync, rename, fsync of the folder."""
    with replacing(path, make_folder=make_folder) as temporary:
        write(temporary, content)


@contextlib.contextmanager
def replacing(path: Path, *, make_folder: bool = True) -> Generator[Path]:
    """Lends a temporary path in the same folder; what is written there replaces ``path``.

    If the body raises, the temporary file is removed and ``path`` stays as it was. What earlier
    writes of ``path`` left behind when they were killed is removed too.
    """
    temporary = temporary_for(path)
    with reporting(path):
        if make_folder:
            make(path.parent)
        _clean(path)
        with _held(temporary):
            try:
                yield temporary
                sync(temporary)
                rename(temporary, path)
            except BaseException:
                with contextlib.suppress(OSError, FileError):
                    remove(temporary)
                raise
        sync_folder(path.parent)


def cannot_write(path: Path, error: OSError) -> FileError:
    """The error to raise where ``path`` could not be written."""
    return FileError(
        f"{path} cannot be written: {error.strerror or error}.",
        "Check free space and permissions, or choose another place.",
    )


@contextlib.contextmanager
def reporting(path: Path) -> Generator[None]:
    """Turns errors of the operating system into ours: ``path`` could not be written."""
    try:
        yield
    except OSError as error:
        raise cannot_write(path, error) from error


def check_writable(path: Path) -> None:
    """Raises the error that writing ``path`` would raise, before hours of work lead there."""
    if path.is_dir():
        raise FileError(f"{path} is a folder.", "Name a file to write.")
    probe = temporary_for(path)
    with reporting(path):
        make(path.parent)
        _clean(path)
        with _held(probe):
            write(probe, b"")
            remove(probe)


def leftovers(folder: Path) -> list[Path]:
    """Temporary files of writes to a folder of our own that were broken off by a crash."""
    return [
        path
        for path in sorted(folder.glob(".*.*"))
        if EARLIER.fullmatch(path.name) or (TEMPORARY.fullmatch(path.name) and is_stale(path))
    ]


def remove_leftovers(path: Path) -> None:
    """Removes what broken-off writes of ``path`` left, among a user's files."""
    with reporting(path):
        _clean(path)


def _clean(path: Path) -> None:
    if not path.parent.is_dir():
        return
    own = re.compile(re.escape(f".{path.stem}.{MARK}") + "[0-9a-f]{8}" + re.escape(path.suffix))
    for found in sorted(one for one in path.parent.iterdir() if own.fullmatch(one.name)):
        if is_stale(found):
            with contextlib.suppress(FileNotFoundError, PermissionError):
                remove(found)


def temporary_for(path: Path) -> Path:
    """A new temporary name beside a path."""
    # The suffix stays, because picture writers choose the format by it.
    return path.with_name(f".{path.stem}.{MARK}{secrets.token_hex(4)}{path.suffix}")


@contextlib.contextmanager
def _held(temporary: Path) -> Generator[None]:
    _check_guards(temporary)
    with in_use(temporary):
        yield


@contextlib.contextmanager
def guarded(folder: Path, check: Callable[[], None]) -> Generator[None]:
    """Calls ``check`` before every change in a folder; if it raises, the change is not made."""
    place = folder.absolute()
    before = _guards.get(place)
    _guards[place] = check
    try:
        yield
    finally:
        if before:
            _guards[place] = before
        else:
            del _guards[place]


def _check_guards(path: Path) -> None:
    if _guards:
        places = path.absolute().parents
        for folder, check in _guards.items():
            if folder in places:
                check()


def make(folder: Path) -> None:
    """Makes a folder and those above it that are missing, so that they survive a power loss."""
    missing = [folder]
    while not missing[-1].is_dir() and missing[-1].parent != missing[-1]:
        missing.append(missing[-1].parent)
    for one in reversed(missing[:-1]):
        make_one(one)
        sync_folder(one.parent)


def make_one(folder: Path) -> None:
    """Makes one folder."""
    _check_guards(folder)
    with contextlib.suppress(FileExistsError):  # another process was faster
        folder.mkdir()


def write(path: Path, content: bytes) -> None:
    """Writes the bytes of a new file."""
    _check_guards(path)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _BINARY, 0o666)
    try:
        _write_all(descriptor, content)
    finally:
        os.close(descriptor)


def sync(path: Path) -> None:
    """Waits until the bytes of a file are on the disk."""
    descriptor = os.open(path, os.O_RDWR | _BINARY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def rename(temporary: Path, path: Path) -> None:
    """Puts a file in the place of another, in one indivisible change of the folder."""
    _check_guards(path)
    temporary.replace(path)


def sync_folder(folder: Path) -> None:
    """Waits until the names in a folder are on the disk."""
    if os.name == "nt":  # Windows cannot open folders
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(path: Path) -> None:
    """Removes a file, or a temporary folder with its files."""
    _check_guards(path)
    try:
        path.unlink()
    except (IsADirectoryError, PermissionError):  # what Linux and others say of a folder
        if not path.is_dir():
            raise
        shutil.rmtree(path)


@dataclass(frozen=True)
class Appended:
    """A file that grows."""

    path: Path
    _descriptor: int

    def append(self, content: bytes) -> None:
        """Adds bytes, in one call if the disk takes them."""
        _check_guards(self.path)
        with reporting(self.path):
            _write_all(self._descriptor, content)

    def sync(self) -> None:
        """Waits until all bytes are on the disk."""
        with reporting(self.path):
            os.fsync(self._descriptor)


@contextlib.contextmanager
def appending(path: Path, size: int) -> Generator[Appended]:
    """Opens a file to append at ``size``, cutting off what follows.

    Its name is on the disk before anything is appended.
    """
    _check_guards(path)
    with reporting(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | _BINARY, 0o666)
    try:
        with reporting(path):
            os.ftruncate(descriptor, size)
            sync_folder(path.parent)
        yield Appended(path, descriptor)
    finally:
        with reporting(path):
            os.close(descriptor)


def _write_all(descriptor: int, content: bytes) -> None:
    left = memoryview(content)
    while left:  # a disk with room for half of it takes half of it
        left = left[os.write(descriptor, left) :]
