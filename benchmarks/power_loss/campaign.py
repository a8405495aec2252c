"""Breaks a command off in every way, runs it again, and compares."""

import contextlib
import itertools
import tempfile
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.power_loss.calls import Failing
from benchmarks.power_loss.commands import Command, contents
from benchmarks.power_loss.disk import Fates, Recorder, Tree, all_fates, lay_out, tree_of
from benchmarks.power_loss.order import out_of_order
from datadistill.errors import DataDistillError
from datadistill.files import TEMPORARY

ALL = Fates("all", lambda: "kept", lambda: True)


@dataclass
class Outcome:
    """What came of the cases of a command."""

    cases: int = 0
    resumed: int = 0
    refused: int = 0
    told: int = 0
    """Failing calls that ended the command with a typed error; others it did without."""
    defects: list[str] = field(default_factory=list[str])


@contextlib.contextmanager
def _place() -> Generator[Path]:
    memory = Path("/dev/shm")  # where it is there, thousands of syncs take no time
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


@dataclass
class Campaign:
    """The cases of one command: begun from the same files, and what it ends in if all goes well."""

    command: Command
    outcome: Outcome = field(default_factory=Outcome)

    def __post_init__(self) -> None:
        with _place() as folder:
            self.command.prepare(folder)
            self.start = tree_of(folder)
            self.record = Recorder(folder)
            with self.record.watched():
                self.command.run(folder)
            self.whole = tree_of(folder)
        # Else something is written that the record does not know of.
        assert self.record.disk(len(self.record.changes)).after(ALL) == self.whole

    @property
    def points(self) -> range:
        """The numbers of changes after which the power can fail."""
        return range(len(self.record.changes) + 1)

    @property
    def calls(self) -> range:
        """The numbers of the calls that can fail."""
        with self._begun() as folder:
            calls = Failing(folder)
            with calls.watched():
                self.command.run(folder)
        return range(1, calls.count + 1)

    def lose_power(self, cases: Iterable[tuple[int, Fates]]) -> None:
        """Cuts the power after so many changes; then the command is run again."""
        for point, fates in cases:
            name = f"{self.command.name}, power loss after change {point}, kept: {fates.name}"
            tree = self._after(point, fates, name)
            with _place() as folder:
                lay_out(tree, folder)
                self._again(folder, name)

    def keep_promises(self) -> None:
        """Looks at what is left after every power loss; the command is not run again."""
        self.outcome.defects += out_of_order(self.record)
        for point, fates in itertools.product(self.points, all_fates(range(2))):
            self._after(point, fates, f"{self.command.name}, change {point}, kept: {fates.name}")

    def _after(self, point: int, fates: Fates, name: str) -> Tree:
        """What a power loss leaves; a file that is missing or damaged is a defect."""
        tree = self.record.disk(point).after(fates)
        written = self.record.disk(point).after(ALL)
        promised = self._promised(point)
        for one, content in written.items():
            of_it = one in promised or any(one.startswith(f"{above}/") for above in promised)
            if of_it and tree.get(one, b"lost") != content:
                self.outcome.defects.append(f"{name}: {one} is lost")
        return tree

    def fail(self, cases: Iterable[tuple[int, int, bool]]) -> None:
        """Lets a call fail, once or for ever; then the disk is well and the command run again."""
        for nth, number, forever in cases:
            with self._begun() as folder:
                calls = Failing(folder, nth=nth, number=number, forever=forever)
                ended = None
                with calls.watched():
                    ended = self._ended(lambda place=folder: self.command.run(place))
                name = f"{self.command.name}, call {nth} ({calls.failed}), error {number}"
                name += " for ever" if forever else ""
                if isinstance(ended, Exception) and not isinstance(ended, DataDistillError):
                    self.outcome.defects.append(f"{name}: {ended!r}")
                self.outcome.told += ended is not None
                if _newest(tree_of(folder)) < _newest(self.start):
                    self.outcome.defects.append(f"{name}: a checkpoint is lost")
                self._again(folder, name)

    @contextlib.contextmanager
    def _begun(self) -> Generator[Path]:
        with _place() as folder:
            lay_out(self.start, folder)
            yield folder

    def _promised(self, point: int) -> set[str]:
        """Files that had their name, synced, and were not removed up to some change."""
        named: set[str] = set()
        promised: set[str] = set()
        for kind, *what in self.record.changes[:point]:
            if kind == "rename" and self.command.finished in what[1]:
                place = Path(what[1]).relative_to(self.record.folder)
                if any(map(TEMPORARY.fullmatch, place.parts)):
                    continue  # it may become a part of a whole
                named.add(str(place))
                promised -= named  # the one before may be there yet
            elif kind == "remove":
                promised.discard(str(Path(what[0]).relative_to(self.record.folder)))
            elif kind == "sync":  # of the folder; that of a file comes before its rename
                promised |= named
                named.clear()
        return promised

    @staticmethod
    def _ended(run: Callable[[], object]) -> Exception | None:
        try:
            run()
        except Exception as error:  # of any kind: that is what is found out
            return error
        return None

    def _again(self, folder: Path, name: str) -> None:
        self.outcome.cases += 1
        error = self._ended(lambda: self.command.run(folder))
        if isinstance(error, DataDistillError):
            self.outcome.refused += 1
            return
        self.outcome.resumed += 1
        found = tree_of(folder)
        if error is not None:
            self.outcome.defects.append(f"{name}: then {error!r}")
        elif wrong := _differences(contents(found), contents(self.whole)):
            self.outcome.defects.append(f"{name}: then {', '.join(wrong)} differ")
        stale = [one for one in found if TEMPORARY.fullmatch(Path(one).name)]
        if stale and error is None:
            self.outcome.defects.append(f"{name}: then {', '.join(stale)} is left")


def _newest(tree: Tree) -> str:
    return max((name for name in tree if "checkpoints/step-" in name), default="")


def _differences(found: Tree, wanted: Tree) -> list[str]:
    names = sorted({*found, *wanted})
    return [
        name
        for name in names
        if (name in found, found.get(name)) != (name in wanted, wanted.get(name))
    ]
