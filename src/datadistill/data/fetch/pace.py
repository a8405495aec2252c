"""A bound on how slow a server may be.

The timeout of a socket begins again with every byte, so a server that sends one now and then would
hold a download for ever: in its headers, between chunks or in the file.
"""

import contextlib
import http.client
import socket
import threading
from collections.abc import Callable
from typing import Any
from urllib import request


class Pace:
    """Shuts down the connections of an attempt if too few bytes are received in some seconds.

    Args:
        seconds: How long.
        least: How many bytes are too few.
    """

    def __init__(self, seconds: float, least: int) -> None:
        self.too_slow = False
        self._seconds, self._least = seconds, least
        self._received = 0
        self._sockets: list[socket.socket] = []
        self._ended = threading.Event()
        self._watch = threading.Thread(target=self._check, daemon=True)

    def __enter__(self) -> "Pace":
        self._watch.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._watch.join()
        for one in self._sockets:
            one.close()

    def watch(self, connection: socket.socket) -> None:
        """Begins to watch a connection."""
        # A copy: what TLS makes of a socket takes the socket's own descriptor away.
        self._sockets.append(connection.dup())
        if self.too_slow:  # a redirection by a server that was
            raise TimeoutError

    def add(self, count: int) -> None:
        """Counts bytes that were received."""
        self._received += count

    def _check(self) -> None:
        before = 0
        while not self._ended.wait(self._seconds):
            if self._received - before < self._least:
                self.too_slow = True
                for one in self._sockets:
                    with contextlib.suppress(OSError):  # it has ended by itself
                        one.shutdown(socket.SHUT_RDWR)
                return
            before = self._received


class _Connection(http.client.HTTPConnection):
    """A connection that is watched from its first byte, handshakes included."""

    pace: Pace | None = None

    def connect(self) -> None:
        super().connect()
        if self.pace is not None:
            self.pace.watch(self.sock)


class _SecureConnection(http.client.HTTPSConnection, _Connection):
    """The same with TLS, whose handshake follows :meth:`_Connection.connect`."""


def handlers(pace: Callable[[], Pace | None]) -> list[request.BaseHandler]:
    """Handlers of HTTP and HTTPS whose connections are watched.

    Args:
        pace: Gives the pace of the attempt that is being made.
    """

    def connect(kind: type[_Connection]) -> Any:
        def make(host: str, **options: Any) -> http.client.HTTPConnection:
            connection = kind(host, **options)
            connection.pace = pace()
            return connection

        return make

    class Http(request.HTTPHandler):
        def http_open(self, req: request.Request) -> http.client.HTTPResponse:
            return self.do_open(connect(_Connection), req)

    class Https(request.HTTPSHandler):
        def https_open(self, req: request.Request) -> http.client.HTTPResponse:
            return self.do_open(connect(_SecureConnection), req)

    return [Http(), Https()]
