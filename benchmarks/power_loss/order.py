"""The order in which files are written, checked over every change that was recorded.

A simulated power loss finds a missing sync only if it falls between two changes. This finds it
always: bytes are synced before they get their name, the name is synced at once, and no file that
others may read is written in place. Logs, which grow in place, are synced before a checkpoint that
counts on their lines gets its name.
"""

from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks.power_loss.disk import Recorder
from datadistill.files import TEMPORARY

GROWING = (".jsonl", ".lock")


def out_of_order(record: Recorder) -> list[str]:
    """What a power loss could spoil, by the order of the changes alone."""
    order = _Order(record)
    for change in record.changes:
        order.apply(*change)
    order.end()
    return order.defects


class _Order:
    def __init__(self, record: Recorder) -> None:
        self.defects: list[str] = []
        self._root = record.folder
        self._inodes = dict(record.inodes)
        self._unsynced: set[int] = set()
        self._names: dict[int, set[str]] = defaultdict(set)
        """The names in each folder that are not certain yet."""

    def apply(self, kind: str, *what: Any) -> None:
        if kind == "sync":
            self._unsynced.discard(what[0])
            self._names.pop(what[0], None)
            return
        self._check_names_are_certain(kind, what)
        if kind in ("create", "mkdir"):
            path, inode = what
            self._inodes[path] = inode
            if not TEMPORARY.fullmatch(Path(path).name):
                self._name(path)
        elif kind == "rename":
            self._rename(*what)
        elif kind == "remove":
            self._inodes.pop(what[0])
        else:
            self._write(what[0])

    def end(self) -> None:
        """The end of the command: all has to be certain, but for what grows and is not read."""
        self._check_names_are_certain("end", ())

    def _write(self, inode: int) -> None:
        path = next(Path(path) for path, one in self._inodes.items() if one == inode)
        if not TEMPORARY.fullmatch(path.name) and not path.name.endswith(GROWING):
            self._tell(f"{self._short(path)} is written in place")
        self._unsynced.add(inode)

    def _rename(self, old: str, new: str) -> None:
        inode = self._inodes.pop(old)
        self._inodes[new] = inode
        if inode in self._unsynced:
            self._tell(f"{self._short(new)} gets its name before its bytes are synced")
        logs = [one for path, one in self._inodes.items() if path.endswith(".jsonl")]
        if "checkpoints/step-" in new and self._unsynced & {*logs}:
            self._tell(f"{self._short(new)} counts on lines that are not synced")
        self._name(new)

    def _name(self, path: str) -> None:
        if not path.endswith(GROWING):
            self._names[self._inodes[str(Path(path).parent)]].add(path)

    def _check_names_are_certain(self, kind: str, what: tuple[Any, ...]) -> None:
        """Whatever comes after a new name, its folder is synced before."""
        for names in self._names.values():
            for name in names:
                self._tell(f"{self._short(name)} is not synced before {kind} {what[:1]}")
        self._names.clear()

    def _short(self, path: str | Path) -> str:
        return str(Path(path).relative_to(self._root))

    def _tell(self, defect: str) -> None:
        self.defects.append(defect)
