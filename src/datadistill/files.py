"""The cache folder, and writing files so that a reader never sees half of one.

The stages of a write are functions of their own, in the order in which they happen, so that
tests can stop a process at each.
"""

import contextlib
import os
import secrets
from collections.abc import Generator
from pathlib import Path

from platformdirs import user_cache_path

from .errors import FileError


def cache_folder() -> Path:
    """The folder for downloaded data sets and compiled code, e.g. ``~/.cache/datadistill``."""
    return user_cache_path("datadistill", appauthor=False, opinion=False)


def write_atomically(path: Path, content: bytes, *, make_folder: bool = True) -> None:
    """Writes a whole file or nothing: temporary file, fsync, rename, fsync of the folder."""
    with replacing(path, make_folder=make_folder) as temporary:
        write(temporary, content)


@contextlib.contextmanager
def replacing(path: Path, *, make_folder: bool = True) -> Generator[Path]:
    """Lends a temporary path in the same folder; what is written there replaces ``path``.

    If the body raises, the temporary file is removed and ``path`` stays as it was.
    """
    # The suffix stays, because picture writers choose the format by it.
    temporary = path.with_name(f".{path.stem}.{secrets.token_hex(4)}{path.suffix}")
    try:
        if make_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        sync(temporary)
        rename(temporary, path)
        sync_folder(path.parent)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def cannot_write(path: Path, error: OSError) -> FileError:
    """The error to raise where ``path`` could not be written."""
    return FileError(
        f"{path} cannot be written: {error.strerror or error}.",
        "Check free space and permissions, or choose another place.",
    )


def check_writable(path: Path) -> None:
    """Raises the error that writing ``path`` would raise, before hours of work lead there."""
    if path.is_dir():
        raise FileError(f"{path} is a folder.", "Name a file to write.")
    probe = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise cannot_write(path, error) from error


def leftovers(folder: Path) -> list[Path]:
    """Temporary files of writes that were broken off by a crash."""
    return [path for path in folder.glob(".*.*") if path.name.count(".") >= 3]


def write(path: Path, content: bytes) -> None:
    """Writes the bytes of a new file."""
    path.write_bytes(content)


def sync(path: Path) -> None:
    """Waits until the bytes of a file are on the disk."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def rename(temporary: Path, path: Path) -> None:
    """Puts a file in the place of another, in one indivisible change of the folder."""
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
    """Removes a file."""
    path.unlink()
