"""Reading files that may be compressed, up to the size that they can have."""

import bz2
import gzip
import zlib
from pathlib import Path
from typing import IO, cast

from ...errors import DataError
from ...reading import open_regular

PIECE = 2**20


def unpack(path: Path, at_most: int) -> bytearray:
    """Returns the content of a file, decompressed if it is a gzip or bzip2 file.

    Args:
        path: The file.
        at_most: The most bytes that it can have; little more is ever in memory.
    """
    content = bytearray()
    try:
        with open_regular(path) as raw, _unpacking(raw) as file:
            while piece := file.read(PIECE):
                content += piece
                if len(content) > at_most:
                    raise damaged(path, f"has more than {at_most:,} bytes, the most possible")
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or error
        raise damaged(path, f"cannot be read: {why}") from error
    return content


def _unpacking(file: IO[bytes]) -> IO[bytes]:
    start = file.read(3)
    file.seek(0)
    if start[:2] == b"\x1f\x8b":
        return cast("IO[bytes]", gzip.GzipFile(fileobj=file))
    return cast("IO[bytes]", bz2.BZ2File(file)) if start == b"BZh" else file


def read_text(path: Path, at_most: int) -> str:
    """Returns the content of a text file of at most ``at_most`` bytes."""
    try:
        return unpack(path, at_most).decode("utf-8")
    except UnicodeDecodeError as error:
        raise damaged(path, f"is not UTF-8 text: {error}") from error


def damaged(path: Path, what: str) -> DataError:
    """The error to raise about a file that should be downloaded again."""
    return DataError(f"{path} {what}.", "Download the file again.")
