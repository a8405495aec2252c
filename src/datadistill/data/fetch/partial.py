"""A file that is still being downloaded: resumable, checked, and moved into place at the end."""

import contextlib
import hashlib
import shutil
from collections.abc import Generator
from pathlib import Path
from typing import BinaryIO

from ...errors import FileError
from ...files import replacing
from ...reading import open_regular, read_regular
from ..sources import Source

NOTE_BYTES = 2**16


class UnavailableError(Exception):
    """One way to get a file has failed; there may be others."""


class ConnectionBrokenError(Exception):
    """A connection failed in a way that may be temporary."""


class PartialFile:
    """A file that is being received: ``NAME.part``, beside a note of where it comes from."""

    def __init__(self, path: Path, source: Source) -> None:
        self.path = path
        self._source = source
        self._limit = source.limit if source.size is None else source.size
        self._file = path.with_name(f"{path.name}.part")
        self._origin = path.with_name(f"{path.name}.part.from")
        self._resumed = self.size > 0

    @property
    def size(self) -> int:
        """The bytes received so far."""
        return self._file.stat().st_size if self._file.is_file() else 0

    @property
    def complete(self) -> bool:
        """Whether it has the expected size."""
        return self.size == self._source.size

    def range_headers(self, url: str) -> dict[str, str]:
        """Requests only the rest, if it can be verified that the rest belongs to it."""
        origin, _, validator = self._read_origin().partition("\n")
        same = validator if origin == url else ""
        if not self.size or self.size > self._limit or not (same or self._source.checksum):
            return {}
        return {"Range": f"bytes={self.size}-"} | ({"If-Range": same} if same else {})

    def check_length(self, total: int | None) -> None:
        """Rejects a file of the wrong length before any byte of it is read."""
        if total is None:
            return
        if total > self._limit or total != (self._source.size or total):
            raise UnavailableError(f"offers {total:,} bytes instead of {self._limit:,}")
        missing, free = total - self.size, shutil.disk_usage(self.path.parent).free
        if missing > free:
            raise FileError(
                f"{self.path} needs {missing:,} more bytes, but only {free:,} are free.",
                "Free some space, or choose another --data-dir.",
            )

    @contextlib.contextmanager
    def appending(self, start: int, url: str, validator: str) -> Generator[BinaryIO]:
        """Opens the file at ``start``, noting where it comes from."""
        with writing(self.path):
            if not start:
                self._resumed = False
                self._origin.write_text(f"{url}\n{validator}", encoding="utf-8")
            file = self._file.open("ab" if start else "wb")
        with file:
            yield file

    def append(self, file: BinaryIO, chunk: bytes) -> None:
        """Adds received bytes; raises an error if there are too many."""
        if file.tell() + len(chunk) > self._limit:
            file.truncate(0)
            raise UnavailableError(f"sends more than {self._limit:,} bytes")
        with writing(self.path):
            file.write(chunk)
            file.flush()

    def check_complete(self, total: int | None) -> None:
        """Raises an error if the connection ended too early."""
        wanted = self._source.size or total
        if wanted is not None and self.size != wanted:
            raise ConnectionBrokenError(f"stopped after {self.size:,} of {wanted:,} bytes")

    def finish(self) -> None:
        """Verifies the checksum and moves the file into place."""
        found = checksum_of(self._file, self._source.checksum)
        if found != self._source.checksum:
            resumed, self._resumed = self._resumed, False
            self.drop()
            if resumed:
                raise ConnectionBrokenError("sends bytes that do not continue the partial download")
            raise UnavailableError(
                f"sends a file with the wrong checksum, {found} instead of {self._source.checksum}"
            )
        with replacing(self.path) as temporary:
            self._file.replace(temporary)
        self._origin.unlink(missing_ok=True)

    def drop(self) -> None:
        """Removes what has been received."""
        self._file.unlink(missing_ok=True)
        self._origin.unlink(missing_ok=True)

    def drop_if_empty(self) -> None:
        """Removes an empty file; received bytes are kept for the next attempt."""
        if not self.size:
            self.drop()

    def _read_origin(self) -> str:
        try:
            return read_regular(self._origin, NOTE_BYTES).decode("utf-8")
        except (OSError, UnicodeDecodeError):
            return ""


def checksum_of(path: Path, like: str | None) -> str | None:
    """The checksum of a file, of the same kind as another one; None for None."""
    if like is None:
        return None
    kind = like.partition(":")[0]
    with open_regular(path) as file:
        digest = hashlib.file_digest(file, lambda: hashlib.new(kind, usedforsecurity=False))
    return f"{kind}:{digest.hexdigest()}"


@contextlib.contextmanager
def writing(path: Path) -> Generator[None]:
    """Tells errors of the disk from errors of the network."""
    try:
        yield
    except OSError as error:
        raise FileError(
            f"{path} cannot be written: {error.strerror or error}.",
            "Check free space and permissions, or choose another --data-dir.",
        ) from error
