"""The cache folder, and writing files so that a reader never sees half of one.

The stages of a write are functions of their own, in the order in which they happen, so that
tests can stop a process at each.
"""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Generator
from pathlib import Path
from typing import BinaryIO

from platformdirs import user_cache_path

from .errors import FileError

FREE_BYTES = 2**26
MOST_EXPANSION = 200
"""A file above ``FREE_BYTES`` is refused if it is so many times larger than what is stored of it.

Real data are not compressed further than this; zip bombs and files of holes are.
"""


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


def open_regular(path: Path) -> BinaryIO:
    """Opens a regular file for reading.

    Raises:
        OSError: The path is something else, such as a FIFO or a device, which could block or never
            end; or nearly all of the file is a hole, which would fill the memory with zeros.
    """
    _check_regular(path.stat().st_mode, path)  # opening a device may already have an effect
    # Should a FIFO take the file's place just now, O_NONBLOCK opens it without waiting.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags | getattr(os, "O_CLOEXEC", 0))
    try:
        _check_regular(os.fstat(descriptor).st_mode, path)
        _check_stored(descriptor, path)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def check_regular(path: Path) -> None:
    """Raises the error of :func:`open_regular`, for libraries that open a path themselves."""
    open_regular(path).close()


def read_regular(path: Path, at_most: int | None = None) -> bytes:
    """Reads a regular file.

    Args:
        path: The file.
        at_most: The most bytes that it can have; a larger one raises an OSError.
    """
    with open_regular(path) as file:
        if at_most is None:
            return file.read()
        content = file.read(min(at_most, os.fstat(file.fileno()).st_size) + 1)
        content += file.read(at_most + 1 - len(content))  # more than the size that it shows
    if len(content) > at_most:
        raise OSError(errno.EFBIG, f"it is too large, larger than {at_most:,} bytes", str(path))
    return content


def _check_regular(mode: int, path: Path) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))


def _check_stored(descriptor: int, path: Path) -> None:
    """Refuses a file whose size is nearly all hole. Systems that cannot tell report no holes."""
    size = os.fstat(descriptor).st_size
    if size <= FREE_BYTES or not hasattr(os, "SEEK_HOLE"):
        return
    stored = end = 0
    with contextlib.suppress(OSError):  # there are no more data, or the system cannot tell
        while stored * MOST_EXPANSION < size:
            begin = os.lseek(descriptor, end, os.SEEK_DATA)
            end = os.lseek(descriptor, begin, os.SEEK_HOLE)
            stored += end - begin
    os.lseek(descriptor, 0, os.SEEK_SET)
    if stored * MOST_EXPANSION < size:
        raise OSError(errno.EFBIG, f"only {stored:,} of its {size:,} bytes are stored", str(path))
