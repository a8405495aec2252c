"""MATLAB's .mat files, version 5 to 7: real arrays by name.

scipy reads them, but only what was checked first: it allocates whatever size a file claims. So the
wanted arrays are found, bounded and decompressed here, and scipy sees a file of these alone.
"""

import io
import math
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...reading import read_regular
from .unpack import damaged

HEADER = 128
HEAD = 160  # at most so many bytes of an array precede its numbers
MOST_ELEMENTS = 100
MATRIX, COMPRESSED = 14, 15
SIZES = {1: 1, 2: 1, 3: 2, 4: 2, 5: 4, 6: 4, 7: 4, 9: 8, 12: 8, 13: 8}  # bytes, by type of number
NUMERIC_CLASSES = range(6, 16)
COMPLEX = 0x0800


def read_mat(path: Path, at_most: dict[str, int]) -> dict[str, np.ndarray]:
    """Reads arrays from a .mat file; others in it are skipped.

    Args:
        path: The file.
        at_most: The names of the arrays to read, and the most bytes that each can have.
    """
    from scipy.io import loadmat  # slow to import

    limit = sum(at_most.values()) + 2**20
    try:
        raw = read_regular(path, limit)
        order = _byte_order(raw)
        checked = _checked_arrays(raw, order, at_most)
        del raw
        arrays = loadmat(io.BytesIO(_file_of(checked, order)))
    except Exception as error:  # scipy may raise nearly anything
        why = getattr(error, "strerror", None) or error
        raise damaged(path, f"cannot be read as a .mat file: {why}") from error
    for name in at_most:
        if name not in checked:
            raise damaged(path, f"has no array called {name}")
    return {name: arrays[name] for name in checked}


def _byte_order(raw: bytes) -> str:
    if raw.startswith((b"MATLAB 7.3", b"\x89HDF")):
        raise ValueError("version 7.3 is not supported; save it with -v7")
    orders = {b"IM": "<", b"MI": ">"}
    mark = raw[HEADER - 2 : HEADER]
    if mark not in orders:
        raise ValueError("no MATLAB header")
    return orders[mark]


def _checked_arrays(raw: bytes, order: str, at_most: dict[str, int]) -> dict[str, bytes]:
    """Returns the wanted arrays, decompressed, each no larger than it can be."""
    checked: dict[str, bytes] = {}
    place = HEADER
    for _ in range(MOST_ELEMENTS):
        if place >= len(raw):
            return checked
        kind, size = struct.unpack_from(order + "II", raw, place)
        element = memoryview(raw)[place + 8 : place + 8 + size]
        if len(element) < size:
            raise ValueError("the file is truncated")
        if kind not in (MATRIX, COMPRESSED):
            raise ValueError(f"an element of type {kind} is not an array")
        source = _Source(element, compressed=kind == COMPRESSED)
        place += 8 + size + (-size % 8 if kind == MATRIX else 0)
        if kind == COMPRESSED and struct.unpack(order + "II", source.take(8))[0] != MATRIX:
            continue
        head = _Head.read(source.take(HEAD, exactly=False), order)
        if head.name in at_most and head.name not in checked:
            end = head.end(at_most[head.name])
            content = head.content + source.take(end - len(head.content))
            checked[head.name] = content[:end]
            source.finish()
    raise ValueError(f"more than {MOST_ELEMENTS} arrays")


class _Source:
    """The bytes of an array, decompressed as far as they are taken."""

    def __init__(self, content: memoryview, *, compressed: bool) -> None:
        self._rest = content
        self._inflate = zlib.decompressobj() if compressed else None

    def take(self, size: int, *, exactly: bool = True) -> bytes:
        if size <= 0:
            return b""
        if self._inflate is None:
            taken, self._rest = bytes(self._rest[:size]), self._rest[size:]
        else:
            taken = self._inflate.decompress(self._rest, size)
            self._rest = memoryview(self._inflate.unconsumed_tail)
        if exactly and len(taken) < size:
            raise ValueError("an array is truncated")
        return taken

    def finish(self) -> None:
        """Reads up to the checksum, which zlib then verifies."""
        if self._inflate is not None:
            self._inflate.decompress(self._rest, HEAD)
            if not self._inflate.eof:
                raise ValueError("an array is longer than it says")


@dataclass(frozen=True)
class _Head:
    """The beginning of an array: flags, dimensions and name, each behind a tag of type and size.

    Attributes:
        content: The bytes that were read; they may include some numbers.
        order: The byte order.
        flags: The class of the array, and whether it is complex.
        shape: Its dimensions.
        name: Its name.
        after: Where the tag of its numbers is.
    """

    content: bytes
    order: str
    flags: int
    shape: tuple[int, ...]
    name: str
    after: int

    @classmethod
    def read(cls, content: bytes, order: str) -> "_Head":
        place, parts = 0, list[bytes]()
        for most in (8, 32, 64):
            kind, size, start, place = _tag(content, place, order)
            if kind not in SIZES or size > most or start + size > len(content):
                raise ValueError("an array has no valid header")
            parts.append(content[start : start + size])
        flags, sizes, name = parts
        shape = struct.unpack(f"{order}{len(sizes) // 4}i", sizes)
        return cls(
            content,
            order,
            struct.unpack(order + "II", flags)[0],
            shape,
            name.decode("latin-1"),
            place,
        )

    def end(self, at_most: int) -> int:
        """Where the numbers end; raises an error unless they are real and at most so many bytes."""
        if self.flags & 0xFF not in NUMERIC_CLASSES or self.flags & COMPLEX:
            raise ValueError(f"{self.name} is not an array of real numbers")
        if min(self.shape, default=-1) < 0:
            raise ValueError(f"{self.name} has the shape {self.shape}")
        kind, size, _, end = _tag(self.content, self.after, self.order)
        if kind not in SIZES:
            raise ValueError(f"{self.name} has numbers of an unknown type")
        count = math.prod(self.shape)
        if size != count * SIZES[kind]:
            raise ValueError(f"{self.name} should have {count} numbers but has {size} bytes")
        if size > at_most:
            raise ValueError(f"{self.name} has {size:,} bytes, more than {at_most:,}")
        return end


def _tag(content: bytes, place: int, order: str) -> tuple[int, int, int, int]:
    """Returns the type and size of an element, where its content starts, and where the next is."""
    kind, size = struct.unpack_from(order + "II", content, place)
    if not kind >> 16:
        return kind, size, place + 8, place + 8 + size + -size % 8
    if kind >> 16 > 4:  # the content is within the tag
        raise ValueError("an array has no valid header")
    return kind & 0xFFFF, kind >> 16, place + 4, place + 8


def _file_of(arrays: dict[str, bytes], order: str) -> bytes:
    """A .mat file of some arrays."""
    header = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack(order + "HH", 0x0100, 0x4D49)
    tags = (struct.pack(order + "II", MATRIX, len(content)) for content in arrays.values())
    return header + b"".join(
        part for pair in zip(tags, arrays.values(), strict=True) for part in pair
    )
