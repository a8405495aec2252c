"""A lock on a folder: two processes cannot write the same run or pool.

The operating system holds it, and releases it when its holder ends, however it ends.
"""

import contextlib
import os
import platform
import sys
from collections.abc import Generator
from pathlib import Path

from .errors import FileError, RunError
from .files import cannot_write


@contextlib.contextmanager
def locked(path: Path) -> Generator[None]:
    """Holds a lock file; raises at once if another process holds it."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise cannot_write(path, error) from error
    try:
        _take(descriptor, path)
        with contextlib.suppress(OSError):  # only a courtesy, for which a disk may be too full
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"process {os.getpid()} on {platform.node()}".encode())
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, path: Path) -> None:
    try:
        _lock(descriptor)
    except BlockingIOError:
        holder = os.read(descriptor, 200).decode(errors="replace") or "another process"
        raise RunError(
            f"{path.parent} is in use by {holder}.", "Wait until it ends, or stop it."
        ) from None
    except OSError as error:
        raise FileError(
            f"{path} cannot be locked: {error.strerror or error}.",
            "Choose a folder on a file system that supports locks, such as a local disk.",
        ) from error


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError from error

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
