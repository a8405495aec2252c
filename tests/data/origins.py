"""Origins of small data sets on a server on loopback."""

import hashlib
import io
import tarfile
from pathlib import Path

from datadistill.data.download import Patience, Source
from datadistill.data.fetch import Fetched, fetch
from datadistill.data.origins import Download, Origin

from .test_fetch_server import Site

PATIENCE = Patience(timeout=30, attempts=2, wait=0.01)
NOWHERE = Source((), None, None)


def md5(content: bytes) -> str:
    return f"md5:{hashlib.md5(content).hexdigest()}"


def tar_of(members: dict[str, bytes | tarfile.TarInfo], mode: str = "w:gz") -> bytes:
    """A tarball of files, or of whatever else is given as a header."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as tar:  # pyright: ignore[reportCallIssue, reportArgumentType]
        for name, content in members.items():
            info = content if isinstance(content, tarfile.TarInfo) else tarfile.TarInfo(name)
            info.name = name
            if isinstance(content, bytes):
                info.size = len(content)
            tar.addfile(info, io.BytesIO(content) if isinstance(content, bytes) else None)
    return packed.getvalue()


def link(kind: bytes, to: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo()
    info.type, info.linkname = kind, to
    return info


def origin_of(site: Site, **files: bytes) -> Origin:
    downloads = [
        Download(name, Source((site.serve(name, content),), md5(content), len(content)))
        for name, content in files.items()
    ]
    return Origin("set", tuple(downloads))


def archive_of(site: Site, content: bytes, *gives: str, members: str) -> Origin:
    source = Source((site.serve("a.tgz", content),), md5(content), len(content))
    return Origin("set", (Download("a.tgz", source, gives, members),))


def run(origin: Origin, data_dir: Path) -> Fetched:
    return fetch("set", data_dir, origins={"set": origin}, patience=PATIENCE)


def tree(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
