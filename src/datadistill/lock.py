"""A lock on a folder: two processes cannot write the same run or pool.

The operating system holds it, and releases it when its holder ends, however it ends. Both the
folder and a file in it are locked: the folder's lock survives if somebody removes the file, and
the file's shows who holds it, also to earlier versions. Should both be replaced, the holder finds
out before its next change of the folder, and makes none.
"""

import contextlib
import os
import platform
from collections.abc import Generator
from pathlib import Path

from .errors import FileError, RunError
from .files import cannot_write, guarded
from .flock import lock

TRIES = 100


@contextlib.contextmanager
def locked(path: Path) -> Generator[None]:
    """Holds a lock file and its folder; raises at once if another process holds one of them.

    While it is held, files of the folder are changed only if the lock file is still in its place.
    """
    with _folder_locked(path), _file_locked(path) as descriptor:
        with contextlib.suppress(OSError):  # only a courtesy, for which a disk may be too full
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"process {os.getpid()} on {platform.node()}".encode())
        with guarded(path.parent, lambda: _check(descriptor, path)), _reporting_within(path.parent):
            yield


@contextlib.contextmanager
def _reporting_within(folder: Path) -> Generator[None]:
    """Turns errors of the operating system about any file of a folder into ours."""
    try:
        yield
    except OSError as error:
        if not isinstance(error.filename, str | os.PathLike):
            raise
        place = Path(os.fsdecode(error.filename))
        if not place.absolute().is_relative_to(folder.absolute()):
            raise
        raise FileError(
            f"{place} cannot be read or written: {error.strerror or error}.",
            "Check the disk and permissions.",
        ) from error


@contextlib.contextmanager
def _folder_locked(path: Path) -> Generator[None]:
    if os.name == "nt":  # Windows cannot open folders, and lets nobody remove an open file
        yield
        return
    try:
        descriptor = os.open(path.parent, os.O_RDONLY)
    except OSError as error:
        raise cannot_write(path, error) from error
    try:
        with contextlib.suppress(OSError):  # some network drives lock files only
            try:
                lock(descriptor)
            except BlockingIOError:
                raise _in_use(path) from None
        yield
    finally:
        _close(descriptor)


@contextlib.contextmanager
def _file_locked(path: Path) -> Generator[int]:
    for _ in range(TRIES):
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise cannot_write(path, error) from error
        try:
            _take(descriptor, path)
            if _is_at(descriptor, path):  # else it was replaced before it was locked
                yield descriptor
                return
        finally:
            _close(descriptor)
    raise FileError(f"{path} is replaced again and again.", "Find out which process does it.")


def _take(descriptor: int, path: Path) -> None:
    try:
        lock(descriptor)
    except BlockingIOError:
        raise _in_use(path) from None
    except OSError as error:
        raise FileError(
            f"{path} cannot be locked: {error.strerror or error}.",
            "Choose a folder on a file system that supports locks, such as a local disk.",
        ) from error


def _close(descriptor: int) -> None:
    with contextlib.suppress(OSError):  # it is closed, and nothing of it must survive
        os.close(descriptor)


def _in_use(path: Path) -> RunError:
    holder = ""
    with contextlib.suppress(OSError), path.open("rb") as file:
        holder = file.read(200).decode(errors="replace")
    return RunError(
        f"{path.parent} is in use by {holder or 'another process'}.",
        "Wait until it ends, or stop it.",
    )


def _check(descriptor: int, path: Path) -> None:
    if not _is_at(descriptor, path):
        raise FileError(
            f"The lock {path} was removed or replaced while it was held: nothing more is written.",
            "Make sure that no other process writes there.",
        )


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether a path still leads to an open file."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise cannot_write(path, error) from error
    return os.path.samestat(found, os.fstat(descriptor))
