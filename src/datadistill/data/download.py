"""One file over HTTP: from mirrors, resumed after a break, checked, and never half there."""

import contextlib
import hashlib
import http.client
import shutil
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NoReturn
from urllib import request
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

from ..errors import FileError
from ..files import replacing
from ..progress import Progress, ProgressCallback, silent
from ..version import __version__

CHUNK = 1 << 16
HEADWAY = 1 << 20  # bytes that make an attempt count as a success for patience


@dataclass(frozen=True)
class Source:
    """Where one file can be had, and how to know it when it arrives.

    Attributes:
        urls: Its mirrors, tried in turn.
        checksum: ``sha256:…`` or ``md5:…``; None if none is known for certain.
        size: Its bytes; None if not known for certain.
        limit: The most bytes to accept where the size is not known.
    """

    urls: tuple[str, ...]
    checksum: str | None
    size: int | None
    limit: int = 1 << 26


@dataclass(frozen=True)
class Patience:
    """How long to wait for a mirror.

    Attributes:
        timeout: Seconds without a byte before a connection counts as broken.
        attempts: Failures in a row before a mirror is given up.
        wait: Seconds before the second attempt; doubled before each further one.
    """

    timeout: float = 20.0
    attempts: int = 5
    wait: float = 1.0


class UnavailableError(Exception):
    """One way to a file has failed; there may be others."""


class _BrokenError(Exception):
    """The connection failed in a way that may pass."""


class Downloader:
    """Downloads files; asks no host again that could not be reached.

    Args:
        progress: Told how many bytes of each file have arrived.
        patience: How long to wait for a mirror.
    """

    def __init__(
        self, progress: ProgressCallback = silent, patience: Patience | None = None
    ) -> None:
        self._progress = progress
        self._patience = patience or Patience()
        self._opener = _http_only()
        self._answered: set[str] = set()
        self._given_up: dict[str, str] = {}

    def get(self, source: Source, path: Path) -> None:
        """Puts the file at ``path``: whole and checked, or not at all.

        What has arrived waits in ``path.part`` when the download breaks off, even if the
        process is killed, and the next call goes on from there.

        Raises:
            UnavailableError: No mirror gives the file.
            FileError: The disk is full or cannot be written.
        """
        with _writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            part = _Part(path, source)
        reasons: list[str] = []
        for url in source.urls:
            host = urlsplit(url).netloc
            try:
                if host in self._given_up:
                    raise UnavailableError(self._given_up[host])
                self._from_mirror(url, host, part)
            except UnavailableError as reason:
                reasons.append(f"{host} {reason}")
            else:
                return
        part.drop_if_empty()
        raise UnavailableError(f"no mirror gives {path.name}: {', '.join(reasons)}")

    def _from_mirror(self, url: str, host: str, part: "_Part") -> None:
        failures = 0
        while True:
            before = part.size
            try:
                if not part.complete:
                    self._attempt(url, host, part)
                part.finish()
                return
            except _BrokenError as reason:
                failures = 1 if part.size - before >= HEADWAY else failures + 1
                if failures >= self._patience.attempts:
                    self._given_up[host] = str(reason)
                    raise UnavailableError(str(reason)) from reason
            time.sleep(self._patience.wait * 2 ** (failures - 1))

    def _attempt(self, url: str, host: str, part: "_Part") -> None:
        """Asks once for what is still missing, and appends what comes."""
        headers = {"User-Agent": f"datadistill/{__version__}", "Accept-Encoding": "identity"}
        wanted = request.Request(url, headers=headers | part.range_headers(url))
        with self._answer(wanted, host, part) as answer:
            start = _start(answer, part)
            total = _total(answer, start)
            part.check_length(total)
            with part.appending(start, url, _validator(answer)) as file:
                while chunk := _read(answer):
                    part.append(file, chunk)
                    done = file.tell()
                    self._progress(Progress(part.path.name, done, total or done))
        part.check_complete(total)

    @contextlib.contextmanager
    def _answer(
        self, wanted: request.Request, host: str, part: "_Part"
    ) -> Generator[http.client.HTTPResponse]:
        try:
            answer = self._opener.open(wanted, timeout=self._patience.timeout)
        except HTTPError as error:
            error.close()
            self._answered.add(host)
            _raise_for(error, part)
        except URLError as error:
            if host in self._answered:
                raise _BrokenError(_reason(error.reason)) from error
            # Nobody is there: waiting would only keep the user from the next mirror.
            self._given_up[host] = _reason(error.reason)
            raise UnavailableError(self._given_up[host]) from error
        except (OSError, http.client.HTTPException) as error:
            raise _BrokenError(_reason(error)) from error
        self._answered.add(host)
        with answer:
            yield answer


class _Part:
    """A file that is still arriving: ``NAME.part``, beside a note of where it came from."""

    def __init__(self, path: Path, source: Source) -> None:
        self.path = path
        self._source = source
        self._limit = source.limit if source.size is None else source.size
        self._file = path.with_name(f"{path.name}.part")
        self._origin = path.with_name(f"{path.name}.part.from")
        self._resumed = self.size > 0

    @property
    def size(self) -> int:
        return self._file.stat().st_size if self._file.is_file() else 0

    @property
    def complete(self) -> bool:
        return self.size == self._source.size

    def range_headers(self, url: str) -> dict[str, str]:
        """Asks for the rest only, if it can be told whether the rest fits."""
        origin, _, validator = self._read_origin().partition("\n")
        same = validator if origin == url else ""
        if not self.size or self.size > self._limit or not (same or self._source.checksum):
            return {}
        return {"Range": f"bytes={self.size}-"} | ({"If-Range": same} if same else {})

    def check_length(self, total: int | None) -> None:
        """Refuses a file of the wrong length before a byte of it is read."""
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
        """Opens the part at ``start``, noting where it comes from."""
        with _writing(self.path):
            if not start:
                self._resumed = False
                self._origin.write_text(f"{url}\n{validator}", encoding="utf-8")
            file = self._file.open("ab" if start else "wb")
        with file:
            yield file

    def append(self, file: BinaryIO, chunk: bytes) -> None:
        if file.tell() + len(chunk) > self._limit:
            file.truncate(0)
            raise UnavailableError(f"sends more than {self._limit:,} bytes")
        with _writing(self.path):
            file.write(chunk)
            file.flush()

    def check_complete(self, total: int | None) -> None:
        wanted = self._source.size or total
        if wanted is not None and self.size != wanted:
            raise _BrokenError(f"breaks off after {self.size:,} of {wanted:,} bytes")

    def finish(self) -> None:
        """Checks the checksum and puts the file in its place."""
        found = checksum_of(self._file, self._source.checksum)
        if found != self._source.checksum:
            resumed, self._resumed = self._resumed, False
            self.drop()
            if resumed:
                raise _BrokenError("sends what does not fit what was here")
            raise UnavailableError(f"sends other bytes, {found} for {self._source.checksum}")
        with replacing(self.path) as temporary:
            self._file.replace(temporary)
        self._origin.unlink(missing_ok=True)

    def drop(self) -> None:
        self._file.unlink(missing_ok=True)
        self._origin.unlink(missing_ok=True)

    def drop_if_empty(self) -> None:
        if not self.size:
            self.drop()

    def _read_origin(self) -> str:
        try:
            return self._origin.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return ""


def checksum_of(path: Path, like: str | None) -> str | None:
    """The checksum of a file, of the same kind as another one; None for None."""
    if like is None:
        return None
    kind = like.partition(":")[0]
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, lambda: hashlib.new(kind, usedforsecurity=False))
    return f"{kind}:{digest.hexdigest()}"


@contextlib.contextmanager
def _writing(path: Path) -> Generator[None]:
    """Tells errors of the disk from errors of the network."""
    try:
        yield
    except OSError as error:
        raise FileError(
            f"{path} cannot be written: {error.strerror or error}.",
            "Check free space and permissions, or choose another --data-dir.",
        ) from error


def _http_only() -> request.OpenerDirector:
    """The usual way to open web addresses, but none other, whatever a server redirects to."""
    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler,
        request.UnknownHandler,
        request.HTTPHandler,
        request.HTTPSHandler,
        request.HTTPDefaultErrorHandler,
        request.HTTPRedirectHandler,
        request.HTTPErrorProcessor,
    ):
        opener.add_handler(handler())
    return opener


def _raise_for(error: HTTPError, part: _Part) -> NoReturn:
    if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
        part.drop()
        raise _BrokenError("has no more bytes than were here") from error
    if error.code in (408, 429) or error.code >= 500:
        raise _BrokenError(f"answers {error.code} {error.reason}") from error
    if 300 <= error.code < 400:
        raise UnavailableError("redirects in a circle, or away from the web") from error
    raise UnavailableError(f"answers {error.code} {error.reason}") from error


def _start(answer: http.client.HTTPResponse, part: _Part) -> int:
    """Where the bytes of an answer begin: at 0 unless the server went along with a range."""
    if answer.status != http.HTTPStatus.PARTIAL_CONTENT:
        return 0
    given = answer.headers.get("Content-Range", "").removeprefix("bytes ").partition("-")[0]
    if given != str(part.size):
        part.drop()
        raise _BrokenError("answers with another range than was asked for")
    return part.size


def _total(answer: http.client.HTTPResponse, start: int) -> int | None:
    """The bytes of the whole file, as far as the server tells."""
    length = answer.headers.get("Content-Length", "")
    return start + int(length) if length.isdecimal() else None


def _validator(answer: http.client.HTTPResponse) -> str:
    """By what to tell whether the file on the server has changed; weak tags cannot."""
    tag = answer.headers.get("ETag", "")
    return tag if tag.startswith('"') else answer.headers.get("Last-Modified", "")


def _read(answer: http.client.HTTPResponse) -> bytes:
    try:
        return answer.read1(CHUNK)
    except (OSError, http.client.HTTPException) as error:
        raise _BrokenError(_reason(error)) from error


def _reason(error: object) -> str:
    if isinstance(error, TimeoutError):
        return "does not answer in time"
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"cannot be reached ({words or type(error).__name__})"
