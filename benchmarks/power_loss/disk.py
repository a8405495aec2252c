"""A disk that loses power: what is on it after any call, as file systems may leave it.

The bytes of a file are certain once the file is synced, and a name once its folder is. Until then
each write may be kept, dropped, torn or left as zeros, and each change of a name kept or dropped,
in any combination. A rename is indivisible, and bytes that were synced are not harmed by a later
write beside them. More than that POSIX does not promise.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Literal

from benchmarks.power_loss.calls import Calls

Fate = Literal["kept", "dropped", "torn", "zeros"]
FATES: tuple[Fate, ...] = ("kept", "dropped", "torn", "zeros")
Tree = dict[str, bytes | None]
"""The content of every file by its path, and None for every folder."""


@dataclass(eq=False)
class File:
    """Bytes that are certain, and changes that are not: (offset, bytes), or a size."""

    certain: bytes = b""
    pending: list[tuple[int, bytes] | int] = field(default_factory=list[Any])

    def sync(self) -> None:
        """Makes all changes certain."""
        self.certain, self.pending = self.after(lambda: "kept"), []

    def after(self, fate: Callable[[], Fate]) -> bytes:
        """The bytes after a power loss."""
        content = bytearray(self.certain)
        for change in self.pending:
            what = fate()
            if isinstance(change, int):
                if what != "dropped":
                    content = content[:change].ljust(change, b"\0")
                continue
            offset, written = change
            kept = {
                "kept": written,
                "dropped": b"",
                "torn": written[: len(written) // 2],
                "zeros": bytes(len(written)),
            }[what]
            if kept:
                content = content.ljust(offset, b"\0")
                content[offset : offset + len(kept)] = kept
        return bytes(content)


@dataclass(eq=False)
class Folder:
    """Names that are certain, and changes of names that are not.

    A change is a name to remove, if any, and a name with what it then leads to, if any.
    """

    certain: dict[str, "Node"] = field(default_factory=dict[str, "Node"])
    pending: list[tuple[str | None, str | None, "Node"]] = field(default_factory=list[Any])

    def sync(self) -> None:
        """Makes all changes certain."""
        self.certain, self.pending = self.after(lambda: True), []

    def after(self, kept: Callable[[], bool]) -> dict[str, "Node"]:
        """The names after a power loss."""
        names = dict(self.certain)
        for old, new, node in self.pending:
            if kept():
                if old is not None and names.get(old) is node:
                    del names[old]
                if new is not None:
                    names[new] = node
        return names


Node = File | Folder


@dataclass(frozen=True)
class Fates:
    """What becomes of all that is not certain."""

    name: str
    data: Callable[[], Fate]
    names: Callable[[], bool]


def all_fates(seeds: range) -> list[Fates]:
    """The extremes, and random ones."""
    extremes = [
        Fates("nothing", lambda: "dropped", lambda: False),
        Fates("all", lambda: "kept", lambda: True),
        Fates("names", lambda: "dropped", lambda: True),
        Fates("bytes", lambda: "kept", lambda: False),
        Fates("names and zeros", lambda: "zeros", lambda: True),
        Fates("names and halves", lambda: "torn", lambda: True),
    ]
    return [*extremes, *map(_random, seeds)]


def _random(seed: int) -> Fates:
    random = Random(seed)
    return Fates(f"random {seed}", lambda: random.choice(FATES), lambda: random.random() < 0.5)


@dataclass
class Recorder(Calls):
    """Records all changes of a folder, to play them again up to any of them."""

    changes: list[tuple[Any, ...]] = field(default_factory=list[Any])
    _existed: bool = False

    def __post_init__(self) -> None:
        self.start: Tree = tree_of(self.folder)
        self.inodes = {str(p): p.stat().st_ino for p in [self.folder, *self.folder.rglob("*")]}

    def before(self, name: str, path: Path) -> None:
        """Sees whether a file is new."""
        if name == "open":
            self._existed = _exists(path)

    def after(self, name: str, path: Path, arguments: tuple[Any, ...], result: Any) -> None:
        """Records a change."""
        if name == "open":
            inode, flags = os.fstat(result).st_ino, arguments[1]
            if not self._existed:
                self.changes.append(("create", str(path), inode))
            if flags & os.O_TRUNC:
                self.changes.append(("truncate", inode, 0))
        elif name == "write":
            descriptor, content = arguments
            end = os.lseek(descriptor, 0, os.SEEK_CUR)
            written = bytes(content[:result])
            self.changes.append(("write", os.fstat(descriptor).st_ino, end - result, written))
        elif name == "ftruncate":
            self.changes.append(("truncate", os.fstat(arguments[0]).st_ino, arguments[1]))
        elif name == "fsync":
            self.changes.append(("sync", os.fstat(arguments[0]).st_ino))
        elif name == "mkdir":
            self.changes.append(("mkdir", str(path), path.stat().st_ino))
        elif name == "replace":
            self.changes.append(("rename", str(path), str(arguments[1])))
        elif name in ("unlink", "remove", "rmdir"):
            self.changes.append(("remove", str(path)))

    def disk(self, count: int) -> "Disk":
        """The disk after the first changes."""
        disk = Disk(self.folder, self.start, self.inodes)
        for change in self.changes[:count]:
            disk.apply(*change)
        return disk


class Disk:
    """The files and folders of a tree, with what is certain of each."""

    def __init__(self, root: Path, start: Tree, inodes: Mapping[str, int]) -> None:
        self.root = str(root)
        self._paths: dict[str, Node] = {self.root: Folder()}
        for name, content in sorted(start.items()):
            self._add(f"{root}/{name}", Folder() if content is None else File(content))
        for node in [*self._paths.values()]:
            node.sync()
        self._nodes = {inodes[path]: node for path, node in self._paths.items()}

    def apply(self, kind: str, *what: Any) -> None:
        """Makes one change."""
        if kind in ("create", "mkdir"):
            path, inode = what
            self._nodes[inode] = self._add(path, File() if kind == "create" else Folder())
        elif kind == "rename":
            old, new = what
            node = self._paths.pop(old)
            self._paths[new] = node
            self._folder(new).pending.append((Path(old).name, Path(new).name, node))
        elif kind == "remove":
            node = self._paths.pop(what[0])
            self._folder(what[0]).pending.append((Path(what[0]).name, None, node))
        elif kind == "sync":
            self._nodes[what[0]].sync()
        else:  # of a file's bytes
            file = self._nodes[what[0]]
            assert isinstance(file, File)
            file.pending.append(what[1] if kind == "truncate" else (what[1], what[2]))

    def after(self, fates: Fates) -> Tree:
        """All that is there after a power loss."""
        found: Tree = {}

        def look(folder: Folder, prefix: str) -> None:
            for name, node in folder.after(fates.names).items():
                if isinstance(node, Folder):
                    found[prefix + name] = None
                    look(node, f"{prefix}{name}/")
                else:
                    found[prefix + name] = node.after(fates.data)

        top = self._paths[self.root]
        assert isinstance(top, Folder)
        look(top, "")
        return found

    def _add(self, path: str, node: Node) -> Node:
        self._paths[path] = node
        self._folder(path).pending.append((None, Path(path).name, node))
        return node

    def _folder(self, path: str) -> Folder:
        folder = self._paths[str(Path(path).parent)]
        assert isinstance(folder, Folder)
        return folder


def tree_of(folder: Path) -> Tree:
    """All files and folders below a folder."""
    return {
        str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
    }


def lay_out(tree: Tree, folder: Path) -> None:
    """Writes a tree to a real folder."""
    for name, content in sorted(tree.items()):
        if content is None:
            (folder / name).mkdir(parents=True)
        else:
            (folder / name).write_bytes(content)


def _exists(path: Path) -> bool:
    return os.access(path, os.F_OK, follow_symlinks=False)
