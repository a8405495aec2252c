"""Writing files so that a reader never sees half of one."""

import contextlib
import os
import secrets
from collections.abc import Generator
from pathlib import Path

from .errors import FileError


def write_atomically(path: Path, content: bytes) -> None:
    """Writes a whole file or nothing: temporary file, fsync, rename, fsync of the folder."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.write(content)


@contextlib.contextmanager
def replacing(path: Path) -> Generator[Path]:
    """Lends a temporary path in the same folder; what is written there replaces ``path``.

    If the body raises, the temporary file is removed and ``path`` stays as it was.
    """
    # The suffix stays, because picture writers choose the format by it.
    temporary = path.with_name(f".{path.stem}.{secrets.token_hex(4)}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise FileError(
            f"{path} cannot be written: {error.strerror or error}.",
            "Check free space and permissions, or choose another place.",
        ) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


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
        raise FileError(
            f"{path} cannot be written: {error.strerror or error}.",
            "Check permissions, or choose another place.",
        ) from error


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":  # Windows cannot open folders
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
