"""Compiled libraries in the user's cache folder, and loading one from its bytes.

The bytes that were checked are the bytes that are loaded: no file is opened a second time.
"""

import ctypes
import hashlib
import os
import secrets
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from ...notices import warn_once
from ...private import UntrustedError, read_private
from ..cache import tell_not_kept, trusted_folder

FOLDER = "kernels"


def hash_of(content: bytes) -> str:
    """The hash that names a library, and what it was made from."""
    return hashlib.sha256(content).hexdigest()[:32]


def find(key: str) -> bytes | None:
    """The library that was compiled for a key, if it is there, whole, and this user's own."""
    folder = trusted_folder(FOLDER)
    if folder is None:
        return None
    for path in sorted(folder.glob(f"{key}-*.so")):
        try:
            content = read_private(folder, path.name)
        except UntrustedError as error:
            warn_once(f"{error.what} It was not loaded. {error.remedy}")
        except OSError:
            continue
        else:  # a damaged one would end the process
            if path.name == _name(key, content):
                return content
    return None


def keep(key: str, content: bytes) -> None:
    """Keeps a library for the next process; where that fails, the user is told."""
    folder = trusted_folder(FOLDER)
    if folder is None:
        return
    path = folder / _name(key, content)
    temporary = folder / f".{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    try:
        with open(os.open(temporary, flags, 0o600), "wb") as file:  # noqa: PTH123 - private
            file.write(content)
        temporary.replace(path)  # at once: other processes see all of it or nothing
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        tell_not_kept(folder, error)


def load(content: bytes) -> ctypes.CDLL:
    """Loads a library from its bytes.

    Raises:
        OSError: If it cannot be loaded.
    """
    if sys.platform == "linux":
        with suppress(OSError):
            return _from_memory(content)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as private:  # 0700
        path = Path(private, f"{hash_of(content)}.so")
        path.write_bytes(content)
        return ctypes.CDLL(str(path))


def _from_memory(content: bytes) -> ctypes.CDLL:
    # It stays open: a second library must not get the same name, or the first is taken for it.
    descriptor = os.memfd_create("datadistill-kernels")
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        return ctypes.CDLL(f"/proc/self/fd/{descriptor}")
    except OSError:
        os.close(descriptor)
        raise


def _name(key: str, content: bytes) -> str:
    return f"{key}-{hash_of(content)}.so"
