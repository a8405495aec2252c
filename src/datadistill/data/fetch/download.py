"""Downloading one file over HTTP: from mirrors, resumed when interrupted, verified."""

import contextlib
import http.client
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn
from urllib import request
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

from ...files import cache_folder
from ...private import make_private
from ...progress import Progress, ProgressCallback, silent
from ...version import __version__
from ..sources import Source
from .pace import Pace, handlers
from .partial import ConnectionBrokenError, PartialFile, UnavailableError, writing

CHUNK = 1 << 16
HEADWAY = 1 << 20  # an attempt that receives so many bytes resets the count of failures


@dataclass(frozen=True)
class Patience:
    """How long to wait for a mirror.

    Attributes:
        timeout: Seconds without data before a connection counts as broken.
        attempts: Consecutive failures before the next mirror is tried.
        wait: Seconds before the second attempt; doubled for each further one.
        window: Seconds in which at least ``least`` bytes must be received.
        least: How many bytes; a slower connection counts as broken.
    """

    timeout: float = 20.0
    attempts: int = 5
    wait: float = 1.0
    window: float = 60.0
    least: int = 30_000


class Downloader:
    """Downloads files; a host that could not be reached is not tried again.

    Args:
        progress: Called with the number of bytes received of each file.
        patience: How long to wait for a mirror.
    """

    def __init__(
        self, progress: ProgressCallback = silent, patience: Patience | None = None
    ) -> None:
        self._progress = progress
        self._patience = patience or Patience()
        self._pace: Pace | None = None
        self._opener = _http_only(handlers(lambda: self._pace))
        self._answered: set[str] = set()
        self._given_up: dict[str, str] = {}

    def get(self, source: Source, path: Path) -> None:
        """Downloads a file to ``path``: complete and verified, or not at all.

        An interrupted download stays in ``path.part``, even if the process is killed, and the
        next call continues it.

        Raises:
            UnavailableError: No mirror provides the file.
            FileError: The disk is full or not writable.
        """
        with writing(path):
            if path.is_relative_to(cache_folder()):
                make_private(cache_folder())
            path.parent.mkdir(parents=True, exist_ok=True)
            part = PartialFile(path, source)
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
        raise UnavailableError(f"no mirror provides {path.name}: {', '.join(reasons)}")

    def _from_mirror(self, url: str, host: str, part: PartialFile) -> None:
        failures = 0
        while True:
            before = part.size
            try:
                if not part.complete:
                    self._attempt(url, host, part)
                part.finish()
                return
            except ConnectionBrokenError as reason:
                failures = 1 if part.size - before >= HEADWAY else failures + 1
                if failures >= self._patience.attempts:
                    self._given_up[host] = str(reason)
                    raise UnavailableError(str(reason)) from reason
            time.sleep(self._patience.wait * 2 ** (failures - 1))

    def _attempt(self, url: str, host: str, part: PartialFile) -> None:
        """Requests what is missing, once, and appends what is received."""
        headers = {"User-Agent": f"datadistill/{__version__}", "Accept-Encoding": "identity"}
        wanted = request.Request(url, headers=headers | part.range_headers(url))
        with self._paced() as pace, self._answer(wanted, host, part) as answer:
            start = _start(answer, part)
            total = _total(answer, start)
            part.check_length(total)
            with part.appending(start, url, _validator(answer)) as file:
                while chunk := _read(answer):
                    pace.add(len(chunk))
                    part.append(file, chunk)
                    done = file.tell()
                    self._progress(Progress(part.path.name, done, total or done))
        part.check_complete(total)

    @contextlib.contextmanager
    def _paced(self) -> Generator[Pace]:
        """Watches the pace of an attempt; too slow a one is a broken connection."""
        with Pace(self._patience.window, self._patience.least) as self._pace:
            try:
                yield self._pace
            except (ConnectionBrokenError, UnavailableError):
                if not self._pace.too_slow:
                    raise
        if self._pace.too_slow:  # what was received may look like the end of the file
            raise ConnectionBrokenError(
                f"sends less than {self._patience.least:,} bytes in {self._patience.window:g} s"
            )

    @contextlib.contextmanager
    def _answer(
        self, wanted: request.Request, host: str, part: PartialFile
    ) -> Generator[http.client.HTTPResponse]:
        try:
            answer = self._opener.open(wanted, timeout=self._patience.timeout)
        except HTTPError as error:
            error.close()
            self._answered.add(host)
            _raise_for(error, part)
        except URLError as error:
            if host in self._answered:
                raise ConnectionBrokenError(_reason(error.reason)) from error
            # Nobody is there: waiting would only delay the next mirror.
            self._given_up[host] = _reason(error.reason)
            raise UnavailableError(self._given_up[host]) from error
        except (OSError, http.client.HTTPException) as error:
            raise ConnectionBrokenError(_reason(error)) from error
        self._answered.add(host)
        with answer:
            yield answer


def _http_only(connecting: list[request.BaseHandler]) -> request.OpenerDirector:
    """Opens HTTP and HTTPS addresses only, wherever a server redirects to."""
    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler(),
        request.UnknownHandler(),
        *connecting,
        request.HTTPDefaultErrorHandler(),
        request.HTTPRedirectHandler(),
        request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


def _raise_for(error: HTTPError, part: PartialFile) -> NoReturn:
    if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
        part.drop()
        raise ConnectionBrokenError("has no more bytes than the partial download") from error
    if error.code in (408, 429) or error.code >= 500:
        raise ConnectionBrokenError(f"answers {error.code} {error.reason}") from error
    if 300 <= error.code < 400:
        raise UnavailableError("redirects in a loop, or to an address that is not HTTP") from error
    raise UnavailableError(f"answers {error.code} {error.reason}") from error


def _start(answer: http.client.HTTPResponse, part: PartialFile) -> int:
    """Where the bytes of an answer begin: at 0 unless the server honoured the range."""
    if answer.status != http.HTTPStatus.PARTIAL_CONTENT:
        return 0
    given = answer.headers.get("Content-Range", "").removeprefix("bytes ").partition("-")[0]
    if given != str(part.size):
        part.drop()
        raise ConnectionBrokenError("answers with another range than requested")
    return part.size


def _total(answer: http.client.HTTPResponse, start: int) -> int | None:
    """The size of the whole file, if the server tells it."""
    length = answer.headers.get("Content-Length", "")
    return start + int(length) if length.isdecimal() else None


def _validator(answer: http.client.HTTPResponse) -> str:
    """What tells whether the file on the server has changed; weak tags cannot."""
    tag = answer.headers.get("ETag", "")
    return tag if tag.startswith('"') else answer.headers.get("Last-Modified", "")


def _read(answer: http.client.HTTPResponse) -> bytes:
    try:
        return answer.read1(CHUNK)
    except (OSError, http.client.HTTPException) as error:
        raise ConnectionBrokenError(_reason(error)) from error


def _reason(error: object) -> str:
    if isinstance(error, TimeoutError):
        return "does not answer in time"
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"cannot be reached ({words or type(error).__name__})"
