"""Downloads from a real server on loopback that breaks off, lies, stalls and repents."""

import hashlib
import socket
import time
from pathlib import Path

import pytest

from datadistill.data.fetch.download import Downloader, Patience
from datadistill.data.fetch.partial import UnavailableError
from datadistill.data.sources import Source
from datadistill.errors import FileError
from datadistill.progress import Progress

from .test_server import (
    Behaviour,
    Site,
    dripping,
    endless,
    fine,
    redirect,
    shifted,
    silent,
    status,
)

CONTENT = bytes(range(256)) * 1500
HALF = len(CONTENT) // 2
PATIENCE = Patience(timeout=30, attempts=3, wait=0.01)
IMPATIENCE = Patience(timeout=0.5, attempts=3, wait=0.01)


def source(*urls: str, content: bytes = CONTENT) -> Source:
    return Source(urls, f"md5:{hashlib.md5(content).hexdigest()}", len(content))


def get(wanted: Source, path: Path, patience: Patience = PATIENCE) -> None:
    Downloader(patience=patience).get(wanted, path)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def leave_half(path: Path, url: str = "", validator: str = "", content: bytes = CONTENT) -> None:
    """As a killed process leaves it."""
    path.with_name("file.part").write_bytes(content[:HALF])
    path.with_name("file.part.from").write_text(f"{url}\n{validator}")


@pytest.mark.parametrize(
    ("behaviours", "ranges"),
    [
        pytest.param([fine()], [None], id="serves fine"),
        pytest.param(
            [fine(stop=HALF), fine()], [None, f"bytes={HALF}-"], id="breaks off and resumes"
        ),
        pytest.param(
            [fine(stop=HALF), fine(ranges=False)],
            [None, f"bytes={HALF}-"],
            id="breaks off and ignores ranges",
        ),
        pytest.param(
            [fine(stop=HALF), fine(etag='"two"')],
            [None, f"bytes={HALF}-"],
            id="breaks off and changes the file",
        ),
        pytest.param(
            [fine(stop=HALF), shifted, fine()],
            [None, f"bytes={HALF}-", None],
            id="gives the wrong range",
        ),
        pytest.param([status(500), status(503), fine()], [None] * 3, id="500 and then fine"),
        pytest.param([status(429), fine()], [None] * 2, id="too many requests"),
        pytest.param([redirect("/other")], [None] * 2, id="redirects"),
    ],
)
def test_a_download_ends_in_the_whole_file(
    site: Site, tmp_path: Path, behaviours: list[Behaviour], ranges: list[str | None]
) -> None:
    site.serve("other", CONTENT)
    get(source(site.serve("file", CONTENT, *behaviours)), tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert names(tmp_path) == ["file"]
    assert site.ranges == ranges


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        pytest.param(status(404), "answers 404 Not Found", id="404"),
        pytest.param(status(500), "answers 500", id="500 for ever"),
        pytest.param(redirect("/file"), "redirects in a loop", id="redirects in a loop"),
        pytest.param(redirect("file:///etc/passwd"), "an address that is not HTTP", id="to a file"),
        pytest.param(redirect("ftp://127.0.0.1/file"), "unknown url type: ftp", id="to ftp"),
        pytest.param(
            fine(length=len(CONTENT) + 1), f"offers {len(CONTENT) + 1:,} bytes", id="claims more"
        ),
        pytest.param(fine(length=1000), "offers 1,000 bytes", id="claims less"),
        pytest.param(endless, f"sends more than {len(CONTENT):,} bytes", id="endless"),
    ],
)
def test_a_server_that_never_gives_the_file_leaves_nothing(
    site: Site, tmp_path: Path, behaviour: Behaviour, reason: str
) -> None:
    with pytest.raises(UnavailableError, match=reason):
        get(source(site.serve("file", CONTENT, behaviour)), tmp_path / "file")
    assert names(tmp_path) == []
    assert len(site.requests) <= 12


@pytest.mark.parametrize(("after", "range_"), [(0, None), (HALF, f"bytes={HALF}-")])
def test_a_server_that_falls_silent_is_asked_again(
    site: Site, tmp_path: Path, after: int, range_: str | None
) -> None:
    url = site.serve("file", CONTENT, silent(after), fine())
    get(source(url), tmp_path / "file", IMPATIENCE)
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert site.ranges == [None, range_]


def test_a_server_that_stays_silent_is_given_up(site: Site, tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="does not answer in time"):
        get(source(site.serve("file", CONTENT, silent())), tmp_path / "file", IMPATIENCE)
    assert names(tmp_path) == []
    assert len(site.requests) == IMPATIENCE.attempts


def test_wrong_bytes_are_refused_and_leave_nothing(site: Site, tmp_path: Path) -> None:
    url = site.serve("file", bytes(len(CONTENT)))
    with pytest.raises(UnavailableError, match=r"wrong checksum, md5:.* instead of md5:"):
        get(source(url), tmp_path / "file")
    assert names(tmp_path) == []
    assert len(site.requests) == 1


def test_a_server_that_always_breaks_off_at_once_leaves_the_part(
    site: Site, tmp_path: Path
) -> None:
    url = site.serve("file", CONTENT, fine(stop=1000, ranges=False))
    with pytest.raises(UnavailableError, match="stopped after 1,000 of 384,000 bytes"):
        get(source(url), tmp_path / "file")
    assert names(tmp_path) == ["file.part", "file.part.from"]
    assert len(site.requests) == PATIENCE.attempts


def test_the_next_mirror_takes_over_where_the_first_broke_off(site: Site, tmp_path: Path) -> None:
    first = site.serve("first", CONTENT, fine(stop=HALF), status(404))
    second = site.serve("second", CONTENT, fine(etag='"other"'))
    get(source(first, second), tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert site.ranges == [None, f"bytes={HALF}-", f"bytes={HALF}-"]
    assert "If-Range" not in site.requests[-1][1]


def test_a_part_of_another_file_is_thrown_away(site: Site, tmp_path: Path) -> None:
    leave_half(tmp_path / "file", content=bytes(len(CONTENT)))
    get(source(site.serve("file", CONTENT)), tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert site.ranges == [f"bytes={HALF}-", None]


def test_a_whole_part_needs_no_server(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file.part").write_bytes(CONTENT)
    get(source(f"{site.url}/file"), tmp_path / "file")
    assert names(tmp_path) == ["file"]
    assert site.requests == []


def test_a_part_that_is_too_long_is_thrown_away(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file.part").write_bytes(CONTENT + b"more")
    get(source(site.serve("file", CONTENT)), tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert site.ranges == [None]


@pytest.mark.parametrize(
    ("validator", "ranges"), [('"one"', [f"bytes={HALF}-"]), ("", [None]), ('"old"', None)]
)
def test_without_a_checksum_only_an_unchanged_file_is_resumed(
    site: Site, tmp_path: Path, validator: str, ranges: list[str | None] | None
) -> None:
    url = site.serve("file", CONTENT)
    leave_half(tmp_path / "file", url, validator, content=CONTENT if ranges else b"x" * HALF)
    get(Source((url,), None, None), tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert ranges is None or site.ranges == ranges


def test_a_file_of_unknown_size_is_limited(site: Site, tmp_path: Path) -> None:
    wanted = Source((site.serve("file", CONTENT, endless),), None, None, limit=10_000)
    with pytest.raises(UnavailableError, match="sends more than 10,000 bytes"):
        get(wanted, tmp_path / "file")
    wanted = Source((site.serve("file", CONTENT),), None, None, limit=10_000)
    with pytest.raises(UnavailableError, match="offers 384,000 bytes"):
        get(wanted, tmp_path / "file")
    assert names(tmp_path) == []


def test_a_connection_that_makes_headway_is_not_given_up(site: Site, tmp_path: Path) -> None:
    content = bytes(5 << 20)
    breaks = [fine(stop=(n << 20) + 10_000) for n in range(1, 5)]
    url = site.serve("file", content, *breaks, fine())
    get(source(url, content=content), tmp_path / "file")
    assert len(site.requests) == 5 > PATIENCE.attempts


def test_a_host_that_cannot_be_reached_is_asked_once_only(tmp_path: Path) -> None:
    with socket.socket() as taken:  # bound but not listening: connections are refused
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/file"
        downloader = Downloader(patience=Patience(wait=60))
        for name in "one", "two":
            with pytest.raises(UnavailableError, match="cannot be reached"):
                downloader.get(source(url, url), tmp_path / name)


def test_progress_counts_the_bytes_that_were_there(site: Site, tmp_path: Path) -> None:
    reports: list[Progress] = []
    leave_half(tmp_path / "file")
    wanted = source(site.serve("file", CONTENT))
    Downloader(reports.append, PATIENCE).get(wanted, tmp_path / "file")
    assert reports[0].done > HALF
    assert (reports[-1].stage, reports[-1].done) == ("file", len(CONTENT))
    assert {report.total for report in reports} == {len(CONTENT)}


def test_a_file_larger_than_the_disk_is_refused_at_once(site: Site, tmp_path: Path) -> None:
    huge = 1 << 60
    wanted = Source((site.serve("file", CONTENT, fine(length=huge)),), None, huge)
    with pytest.raises(FileError, match="are free"):
        get(wanted, tmp_path / "file")


def test_a_folder_that_cannot_be_written_is_a_file_error(site: Site, tmp_path: Path) -> None:
    (tmp_path / "occupied").write_text("a file")
    with pytest.raises(FileError, match="cannot be written"):
        get(source(site.serve("file", CONTENT)), tmp_path / "occupied" / "file")


@pytest.mark.parametrize("where", ["headers", "file", "chunks"])
def test_a_server_that_drips_without_end_is_given_up(
    site: Site, tmp_path: Path, where: str
) -> None:
    slow = Patience(timeout=30, attempts=2, wait=0.01, window=0.4, least=1000)
    url = site.serve("file", CONTENT, dripping(where))
    begin = time.monotonic()
    # Without size and checksum, what has come so far must not pass for the whole file.
    with pytest.raises(UnavailableError, match=r"less than 1,000 bytes in 0\.4 s"):
        get(Source((url,), None, None), tmp_path / "file", slow)
    assert time.monotonic() - begin < 5
    assert not (tmp_path / "file").exists()
    assert len(site.requests) == 2


def test_a_slow_server_that_is_fast_enough_is_waited_for(site: Site, tmp_path: Path) -> None:
    patience = Patience(timeout=30, attempts=1, window=0.2, least=100)
    url = site.serve("file", CONTENT[:40_960], fine(pause=0.06))
    get(source(url, content=CONTENT[:40_960]), tmp_path / "file", patience)
    assert (tmp_path / "file").read_bytes() == CONTENT[:40_960]
