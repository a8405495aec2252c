"""MATLAB's .mat files of version 5 to 7, as far as arrays of numbers go.

Ours rather than scipy's: it holds no more than the arrays that are asked for can have, whatever
sizes a damaged or hostile file claims.
"""

import math
import struct
import zlib
from pathlib import Path
from typing import Protocol

import numpy as np

from .unpack import damaged

HEADER = 128
MOST_ELEMENTS = 100
MATRIX, COMPRESSED = 14, 15
NUMBERS = {
    **{1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4"},
    **{7: "f4", 9: "f8", 12: "i8", 13: "u8"},
}
NUMERIC_CLASSES = range(6, 16)
COMPLEX = 0x0800


def read_mat(path: Path, at_most: dict[str, int]) -> dict[str, np.ndarray]:
    """Reads arrays from a .mat file; others in it are passed over.

    Args:
        path: The file.
        at_most: How many bytes each wanted array can have, by name.
    """
    limit = sum(at_most.values()) + 2**20
    try:
        with path.open("rb") as file:
            raw = file.read(limit + 1)
        if len(raw) > limit:
            raise ValueError(f"is larger than {limit:,} bytes")
        arrays = _arrays(raw, at_most)
    except (OSError, ValueError, zlib.error, struct.error) as error:
        raise damaged(path, f"is no .mat file that can be read: {error}") from error
    for name in at_most:
        if name not in arrays:
            raise damaged(path, f"holds no array called {name}")
    return arrays


def _arrays(raw: bytes, at_most: dict[str, int]) -> dict[str, np.ndarray]:
    if raw.startswith(b"MATLAB 7.3") or raw.startswith(b"\x89HDF"):
        raise ValueError("it has version 7.3; save it again with -v7")
    mark = raw[126:HEADER]
    if mark not in (b"IM", b"MI"):
        raise ValueError("it has no MATLAB header")
    order = "<" if mark == b"IM" else ">"
    arrays: dict[str, np.ndarray] = {}
    place = HEADER
    for _ in range(MOST_ELEMENTS):
        if place >= len(raw):
            return arrays
        kind, size = struct.unpack_from(order + "II", raw, place)
        element = raw[place + 8 : place + 8 + size]
        if len(element) < size:
            raise ValueError("it ends too early")
        place += 8 + size
        wanted = {name: most for name, most in at_most.items() if name not in arrays}
        if kind == COMPRESSED:
            arrays |= _Matrix(_Packed(element), order).read(wanted, tagged=True)
        elif kind == MATRIX:
            arrays |= _Matrix(_Plain(element), order).read(wanted, tagged=False)
            place += -size % 8
        else:
            raise ValueError(f"it has an element of type {kind}, which is no array")
    raise ValueError(f"it has more than {MOST_ELEMENTS} arrays")


class _Source(Protocol):
    def take(self, size: int) -> bytes: ...

    def finish(self) -> None: ...


class _Plain:
    def __init__(self, content: bytes) -> None:
        self._content, self._place = content, 0

    def take(self, size: int) -> bytes:
        taken = self._content[self._place : self._place + size]
        self._place += size
        if len(taken) < size:
            raise ValueError("an array ends too early")
        return taken

    def finish(self) -> None:
        pass


class _Packed:
    def __init__(self, content: bytes) -> None:
        self._rest, self._unpacker = content, zlib.decompressobj()

    def take(self, size: int) -> bytes:
        taken = self._unpacker.decompress(self._rest, size) if size else b""
        self._rest = self._unpacker.unconsumed_tail if size else self._rest
        if len(taken) < size:
            raise ValueError("an array ends too early")
        return taken

    def finish(self) -> None:
        """Reads up to the checksum, which zlib then compares."""
        self._unpacker.decompress(self._rest, 64)
        if not self._unpacker.eof:
            raise ValueError("an array does not end where it should")


class _Matrix:
    """One array: flags, dimensions, name and numbers, each behind a tag of type and size."""

    def __init__(self, source: _Source, order: str) -> None:
        self._source, self._order = source, order

    def read(self, at_most: dict[str, int], tagged: bool) -> dict[str, np.ndarray]:
        if tagged and struct.unpack(self._order + "II", self._source.take(8))[0] != MATRIX:
            return {}
        flags = struct.unpack(self._order + "II", self._small(8))[0]
        sizes = self._small(32)
        shape = struct.unpack(f"{self._order}{len(sizes) // 4}i", sizes)
        name = self._small(64).decode("latin-1")
        if name not in at_most:
            return {}
        if flags & 0xFF not in NUMERIC_CLASSES or flags & COMPLEX:
            raise ValueError(f"{name} is not an array of real numbers")
        if min(shape, default=-1) < 0:
            raise ValueError(f"{name} has the shape {shape}")
        numbers = self._numbers(name, math.prod(shape), at_most[name])
        self._source.finish()
        return {name: numbers.reshape(shape, order="F")}

    def _small(self, at_most: int) -> bytes:
        kind, size, content = self._tag()
        if kind not in NUMBERS or size > at_most:
            raise ValueError("an array has no proper header")
        return self._content(size, content)

    def _numbers(self, name: str, count: int, at_most: int) -> np.ndarray:
        kind, size, content = self._tag()
        if kind not in NUMBERS:
            raise ValueError(f"{name} holds numbers of an unknown type")
        dtype = np.dtype(self._order + NUMBERS[kind])
        if size != count * dtype.itemsize:
            raise ValueError(f"{name} promises {count} numbers but holds {size} bytes")
        if size > at_most:
            raise ValueError(f"{name} has {size:,} bytes; {at_most:,} is the most it can have")
        numbers = np.frombuffer(self._content(size, content), dtype)
        return numbers.astype(dtype.newbyteorder("="), copy=False)

    def _tag(self) -> tuple[int, int, bytes | None]:
        """Returns type and size, and the content itself if the tag has it inside."""
        tag = self._source.take(8)
        kind, size = struct.unpack(self._order + "II", tag)
        if kind >> 16:
            return kind & 0xFFFF, kind >> 16, tag[4:]
        return kind, size, None

    def _content(self, size: int, content: bytes | None) -> bytes:
        if content is not None:
            if size > len(content):
                raise ValueError("an array has no proper header")
            return content[:size]
        content = self._source.take(size)
        self._source.take(-size % 8)
        return content
