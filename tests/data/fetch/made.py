"""Small data sets on a server on loopback."""

import hashlib
import io
import tarfile
from pathlib import Path

from datadistill.data import DataSet, LabelledData, Options
from datadistill.data.fetch import Fetched, fetch
from datadistill.data.fetch.download import Patience
from datadistill.data.sources import Download, Package, Source

from .test_server import Site

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


def data_set(*downloads: Download, package: Package | None = None) -> DataSet:
    return DataSet(
        name="set",
        what="a set to fetch",
        input_shape=(1, 1, 1),
        classes=1,
        loader=never,
        folder="set",
        downloads=downloads,
        package=package,
    )


def never(folder: Path, options: Options) -> tuple[LabelledData, LabelledData]:
    raise AssertionError("fetching loads nothing")


def served(site: Site, **files: bytes) -> DataSet:
    downloads = [
        Download(name, Source((site.serve(name, content),), md5(content), len(content)))
        for name, content in files.items()
    ]
    return data_set(*downloads)


def archive_of(site: Site, content: bytes, *gives: str, members: str) -> DataSet:
    source = Source((site.serve("a.tgz", content),), md5(content), len(content))
    return data_set(Download("a.tgz", source, gives, members))


def run(fetched: DataSet, data_dir: Path) -> Fetched:
    return fetch("set", data_dir, data_sets={"set": fetched}, patience=PATIENCE)


def tree(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
