"""Locks on open files, by the operating system: they end with the process that holds them."""

import contextlib
import os
import sys
from collections.abc import Generator
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    def lock(descriptor: int) -> None:
        """Locks an open file for this process; raises BlockingIOError if another holds it."""
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError from error

    @contextlib.contextmanager
    def in_use(_temporary: Path) -> Generator[None]:
        """Windows itself refuses to remove a file that a process is writing."""
        yield

    @contextlib.contextmanager
    def folder_in_use(_temporary: Path) -> Generator[None]:
        """Windows cannot open folders."""
        yield

    def is_stale(_temporary: Path) -> bool:
        """Whether a temporary file may be removed; Windows refuses it where it may not."""
        return True

else:
    import fcntl

    def lock(descriptor: int) -> None:
        """Locks an open file for this process; raises BlockingIOError if another holds it."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    @contextlib.contextmanager
    def in_use(temporary: Path) -> Generator[None]:
        """Makes a temporary file, and holds it locked, so that no other process removes it."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with _locked(os.open(temporary, flags, 0o666)):
            yield

    @contextlib.contextmanager
    def folder_in_use(temporary: Path) -> Generator[None]:
        """Holds a temporary folder locked likewise."""
        with _locked(os.open(temporary, os.O_RDONLY)):
            yield

    @contextlib.contextmanager
    def _locked(descriptor: int) -> Generator[None]:
        try:
            with contextlib.suppress(OSError):  # some network drives do not support locks
                lock(descriptor)
            yield
        finally:
            os.close(descriptor)

    def is_stale(temporary: Path) -> bool:
        """Whether no process is writing a temporary file or folder any more."""
        try:
            descriptor = os.open(temporary, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return False
        try:
            lock(descriptor)
        except OSError:
            return False
        finally:
            os.close(descriptor)
        return True
