"""Reading a path that a user or a file names: regular files only, up to the size they can have."""

import contextlib
import errno
import os
import stat
import zipfile
from io import BufferedReader
from pathlib import Path
from typing import IO

FREE_BYTES = 2**26
MOST_EXPANSION = 200
"""A file above ``FREE_BYTES`` is refused if it is so many times larger than what is stored of it.

Real data are not compressed further than this; zip bombs and files of holes are.
"""


def open_regular(path: Path, at_most: int | None = None) -> BufferedReader:
    """Opens a regular file for reading.

    Args:
        path: The file.
        at_most: The most bytes that it can have.

    Raises:
        OSError: The path is something else, such as a FIFO or a device, which could block or never
            end; or the file is too large; or nearly all of it is a hole, which would fill the
            memory with zeros.
    """
    _check_kind(path.stat().st_mode, path)  # opening a device may already have an effect
    # Should a FIFO take the file's place just now, O_NONBLOCK opens it without waiting.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags | getattr(os, "O_CLOEXEC", 0))
    try:
        found = os.fstat(descriptor)
        _check_kind(found.st_mode, path)
        if at_most is not None and found.st_size > at_most:
            raise _too_large(path, at_most)
        _check_stored(descriptor, found.st_size, path)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def check_regular(path: Path) -> None:
    """Raises the error of :func:`open_regular`, for libraries that open a path themselves."""
    open_regular(path).close()


def read_regular(path: Path, at_most: int | None = None) -> bytes:
    """Reads a regular file; raises the errors of :func:`open_regular`.

    Args:
        path: The file.
        at_most: The most bytes that it can have.
    """
    with open_regular(path, at_most) as file:
        if at_most is None:
            return file.read()
        # No more than the file has: a read sets aside all the memory that it is asked for.
        content = file.read(min(os.fstat(file.fileno()).st_size, at_most) + 1)
        content += file.read(at_most + 1 - len(content)) if file.peek(1) else b""
    if len(content) > at_most:  # more than the size that it shows
        raise _too_large(path, at_most)
    return content


def check_stored(file: Path | IO[bytes]) -> None:
    """Refuses a zip file with packed members, which could be of any size; torch.save packs none.

    Raises:
        zipfile.BadZipFile: It is not such a file.
    """
    with zipfile.ZipFile(file) as members:
        if any(one.compress_type != zipfile.ZIP_STORED for one in members.infolist()):
            raise zipfile.BadZipFile("its content is compressed")


def _check_kind(mode: int, path: Path) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))


def _too_large(path: Path, at_most: int) -> OSError:
    return OSError(errno.EFBIG, f"it is too large, larger than {at_most:,} bytes", str(path))


def _check_stored(descriptor: int, size: int, path: Path) -> None:
    """Refuses a file whose size is nearly all hole. Systems that cannot tell report no holes."""
    if size <= FREE_BYTES or not hasattr(os, "SEEK_HOLE"):
        return
    stored = end = 0
    with contextlib.suppress(OSError):  # no more data, or the system cannot tell
        while stored * MOST_EXPANSION < size:
            begin = os.lseek(descriptor, end, os.SEEK_DATA)
            end = os.lseek(descriptor, begin, os.SEEK_HOLE)
            stored += end - begin
    os.lseek(descriptor, 0, os.SEEK_SET)
    if stored * MOST_EXPANSION < size:
        raise OSError(errno.EFBIG, f"only {stored:,} of its {size:,} bytes are stored", str(path))
