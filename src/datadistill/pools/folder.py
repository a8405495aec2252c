"""The folder of a pool that is being made: what is there, and what is missing."""

import platform
from dataclasses import dataclass
from pathlib import Path

import torch

from .. import files
from ..errors import RunError
from ..version import __version__
from .chunks import check_file, read_chunk
from .index import PARTS, Index, Origin, Part, path_of, read_index, write_index

Share = tuple[Part, range]
"""Networks that are trained together and written as one file."""


@dataclass(frozen=True)
class PoolFolder:
    """Where a pool is made. Only one process writes the index; any may write files of networks.

    Attributes:
        path: The folder.
        origin: All that determines the networks, but for their numbers.
    """

    path: Path
    origin: Origin

    @property
    def lock(self) -> Path:
        """The file that the process at work holds locked."""
        return self.path / ".lock"

    def make(self) -> None:
        """Makes the folder."""
        with files.reporting(self.path):
            files.make(self.path)

    def clean(self) -> None:
        """Removes what writes that were broken off have left behind; only under the lock."""
        with files.reporting(self.path):
            for leftover in files.leftovers(self.path):
                files.remove(leftover)

    def begin(self) -> Index:
        """The index as it is on the disk, or a new one; refuses that of other networks."""
        self.clean()
        if not path_of(self.path).exists():
            versions = {
                "datadistill": __version__,
                "torch": torch.__version__,
                "python": platform.python_version(),
            }
            return self.adopt(Index(origin=self.origin, versions=versions))
        index = read_index(self.path)
        if changed := index.origin.differences(self.origin):
            raise RunError(
                f"The pool {self.path} was made with other settings: {'; '.join(changed)}.",
                "Put them back to extend it, or name another --pool.",
            )
        there = [c for c in index.chunks if (self.path / c.file_name).exists()]
        for chunk in there:
            check_file(self.path / chunk.file_name, chunk, whole=True)
        return self.adopt(index.model_copy(update={"chunks": there}))

    def adopt(self, index: Index) -> Index:
        """Adds files of networks that the index does not know yet, and writes it."""
        known = {chunk.file_name for chunk in index.chunks}
        new = [
            read_chunk(path)
            for part in PARTS
            for path in sorted(self.path.glob(f"{part}-*.safetensors"))
            if path.name not in known
        ]
        # In one order, whichever process finished first and whenever the work was interrupted.
        chunks = sorted([*index.chunks, *new], key=lambda c: (PARTS.index(c.part), c.first))
        index = index.model_copy(update={"chunks": chunks})
        if trouble := index.trouble():
            raise RunError(f"The pool {self.path} is not valid: {trouble}.", "Remove that file.")
        write_index(self.path, index)
        return index


def missing(index: Index, wanted: dict[Part, int], most: int) -> list[Share]:
    """The networks that a pool lacks, at most so many for each file."""
    shares: list[Share] = []
    for part in PARTS:
        there, begin = index.numbers(part), 0
        while begin < wanted[part]:
            end = begin
            while end < wanted[part] and end not in there and end - begin < most:
                end += 1
            if end > begin:
                shares.append((part, range(begin, end)))
            begin = max(end, begin + 1)
    return shares
