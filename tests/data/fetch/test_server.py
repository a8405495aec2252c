"""A real HTTP server on loopback that misbehaves as told, and a test that it serves at all."""

import contextlib
import threading
import time
import urllib.request
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Behaviour = Callable[["Answer", bytes], None]


class Answer(BaseHTTPRequestHandler):
    """Answers a request as the next behaviour of its path says; the last one stays."""

    protocol_version = "HTTP/1.1"
    site: "Site"

    def do_GET(self) -> None:
        self.site.requests.append((self.path, dict(self.headers)))
        content, behaviours = self.site.files.get(self.path, (b"", [status(404)]))
        behaviour = behaviours.pop(0) if len(behaviours) > 1 else behaviours[0]
        behaviour(self, content)

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def begin(self, code: int, **headers: object) -> None:
        self.close_connection = True
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def send(self, content: bytes, pause: float = 0.0) -> None:
        for start in range(0, len(content), 4096):
            self.wfile.write(content[start : start + 4096])
            time.sleep(pause)


class _Quiet(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # clients that hang up are what these tests are about


@dataclass
class Site:
    """What is served, and what was asked for."""

    url: str = ""
    files: dict[str, tuple[bytes, list[Behaviour]]] = field(
        default_factory=dict[str, tuple[bytes, list[Behaviour]]]
    )
    requests: list[tuple[str, dict[str, str]]] = field(
        default_factory=list[tuple[str, dict[str, str]]]
    )
    closing: threading.Event = field(default_factory=threading.Event)

    def serve(self, name: str, content: bytes, *behaviours: Behaviour) -> str:
        self.files[f"/{name}"] = content, list(behaviours or [fine()])
        return f"{self.url}/{name}"

    @property
    def ranges(self) -> list[str | None]:
        """The range that each request so far asked for."""
        return [headers.get("Range") for _, headers in self.requests]


@contextlib.contextmanager
def running_site() -> Generator[Site]:
    site = Site()
    handler = type("Handler", (Answer,), {"site": site})
    with _Quiet(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        site.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield site
        finally:
            site.closing.set()
            server.shutdown()
            thread.join()


def fine(
    *,
    ranges: bool = True,
    etag: str = '"one"',
    stop: int | None = None,
    length: int | None = None,
    pause: float = 0.0,
) -> Behaviour:
    """Serves a file.

    Args:
        ranges: Whether it gives parts.
        etag: Its version.
        stop: The byte at which to hang up.
        length: What to claim as its length.
        pause: Seconds between pieces of 4096 bytes.
    """

    def answer(handler: Answer, content: bytes) -> None:
        wanted = handler.headers.get("Range")
        known = handler.headers.get("If-Range", etag) == etag
        start = int(wanted[6:-1]) if ranges and wanted and known else 0
        if start >= len(content) > 0:
            return handler.begin(416, Content_Length=0)
        headers = {"Content_Length": length or len(content) - start, "ETag": etag}
        if start:
            span = f"bytes {start}-{len(content) - 1}/{len(content)}"
            handler.begin(206, Content_Range=span, **headers)
        else:
            handler.begin(200, **headers)
        return handler.send(content[start:stop], pause)

    return answer


def status(code: int) -> Behaviour:
    return lambda handler, content: handler.begin(code, Content_Length=0)


def redirect(to: str) -> Behaviour:
    return lambda handler, content: handler.begin(302, Location=to, Content_Length=0)


def silent(after: int = 0) -> Behaviour:
    """Falls silent at some byte, without hanging up."""

    def answer(handler: Answer, content: bytes) -> None:
        if after:
            handler.begin(200, Content_Length=len(content), ETag='"one"')
            handler.send(content[:after])
        handler.site.closing.wait(60)

    return answer


def endless(handler: Answer, content: bytes) -> None:
    handler.begin(200)
    while True:
        handler.send(bytes(1 << 16))


def shifted(handler: Answer, content: bytes) -> None:
    """Answers every range with another one."""
    handler.begin(206, Content_Length=5, Content_Range=f"bytes 3-7/{len(content)}")
    handler.send(content[3:8])


def test_the_server_serves_whole_files_and_parts() -> None:
    with running_site() as site:
        wanted = urllib.request.Request(site.serve("file", b"0123456789"))
        with urllib.request.urlopen(wanted) as answer:
            assert answer.read() == b"0123456789"
        wanted.add_header("Range", "bytes=4-")
        with urllib.request.urlopen(wanted) as answer:
            assert (answer.status, answer.read()) == (206, b"456789")
        assert site.ranges == [None, "bytes=4-"]


def dripping(where: str, pause: float = 0.02) -> Behaviour:
    """Sends a byte now and then, without end: in the headers, in the file or in its chunks."""
    openings = {
        "headers": b"HTTP/1.1 200 OK\r\nX-Drip: ",
        "file": b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n",
        "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;",
    }

    def answer(handler: Answer, content: bytes) -> None:
        handler.close_connection = True
        handler.wfile.write(openings[where])
        while not handler.site.closing.wait(pause):
            handler.wfile.write(b"x")

    return answer
