"""Kinds of files: how each is made, changed and used."""

import bz2
import functools
import gzip
import io
import random
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from .mutation import changed, changed_json, changed_lines

Change = Callable[[bytes, random.Random], bytes]


class SilentChangeError(Exception):
    """A file with a checksum was accepted with other content."""


class NotFiniteError(Exception):
    """What was read is not finite, or out of its range."""


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes:
        name: Its name.
        make: Makes a valid file, with all that belongs to it, in an empty folder; returns its path.
        use: Reads the file at a path as the program does. Whatever it raises that is not a
            DataDistillError breaks a promise.
        change: Changes its bytes.
    """

    name: str
    make: Callable[[Path], Path]
    use: Callable[[Path], None]
    change: Change = changed


def check_finite(*tensors: Tensor) -> None:
    """Raises an error unless all numbers are finite."""
    for tensor in tensors:
        if tensor.is_floating_point() and not torch.isfinite(tensor.double()).all():
            raise NotFiniteError


def either(*changes: Change) -> Change:
    """One of several changes."""
    return lambda content, draw: draw.choice(changes)(content, draw)


def inside(
    unpack: Callable[[bytes], bytes], pack: Callable[[bytes], bytes], change: Change
) -> Change:
    """A change of what a file packs."""
    return lambda content, draw: pack(change(unpack(content), draw))


def in_json(content: bytes, draw: random.Random) -> bytes:
    """A change of JSON that stays JSON."""
    return changed_json(content.decode(), draw).encode("utf-8", "surrogatepass")


def in_zip(content: bytes, draw: random.Random) -> bytes:
    """A change of one member of a zip file, whose checksums are then right again."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(buffer, "w") as new:
        names = old.namelist()
        chosen, method = draw.choice(names), draw.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
        for name in names:
            member = old.read(name)
            if name == chosen:
                start = draw.choice((0, 0, len(member) // 2))
                member = member[:start] + changed(member[start:], draw)
            new.writestr(name, member, method)
    return buffer.getvalue()


in_gzip = inside(gzip.decompress, functools.partial(gzip.compress, compresslevel=1), changed)
in_bzip2 = inside(bz2.decompress, bz2.compress, either(changed, changed_lines))


def in_header(content: bytes, draw: random.Random) -> bytes:
    """A change of the JSON at the beginning of a safetensors file; its length is right again."""
    length = int.from_bytes(content[:8], "little")
    header = changed_json(content[8 : 8 + length].decode(), draw).encode("utf-8", "replace")
    return len(header).to_bytes(8, "little") + header + content[8 + length :]


def folder_of(path: Path, pattern: str) -> Path:
    """The nearest folder above a path whose name matches."""
    return next(folder for folder in path.parents if re.fullmatch(pattern, folder.name))
