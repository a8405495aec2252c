"""Kills a command at random moments, lets a new start finish, and compares all bytes."""

import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.processes import python

from datadistill.files import leftovers

from .works import WORKS, Work, write_files

TOKEN = "DATADISTILL_KILLS"
"""An environment variable by which the workers of a command are found."""
AT_ONCE = 10.0  # seconds in which workers end with their process 0, on a busy machine
FINISHED = "finished"
TOGETHER = 4  # kills of one piece of work before it may finish
UNLIKE = ("seconds", "check", "checkpoints", ".lock")
TAKEN = re.compile(r" \(\d.*\)$", re.MULTILINE)
"""The time that a command took, as it prints it."""
TIME_IN_TABLE = re.compile(rb'"(cpu_)?seconds": [\d.e-]+')
TIME_IN_PAGE = re.compile(rb"<dd>[\d.,]+ (ms|s|min|h)\b[^<]*</dd>")


@dataclass
class Campaign:
    """Works, what they give undisturbed, and what has been seen.

    Attributes:
        place: A folder for everything.
        moments: Draws when to kill.
        kills: How often each command was killed.
        failures: What should not have happened.
    """

    place: Path
    moments: random.Random
    kills: Counter[str] = field(default_factory=Counter[str])
    failures: list[str] = field(default_factory=list[str])
    _folders: Iterator[int] = field(default_factory=itertools.count)

    def run(self, count: int, names: Sequence[str] = (*WORKS,), together: int = 1) -> None:
        """Kills so many processes of these works, of which so many are disturbed side by side."""
        write_files(self.place)
        if any(WORKS[name].needs_run for name in names):
            (self.place / FINISHED).mkdir()
            self._whole(self.place / FINISHED, WORKS["distill"])
        share, rest = divmod(count, len(names))
        shares = [share + (number < rest) for number in range(len(names))]
        moments = [random.Random(self.moments.random()) for _ in names]
        with ThreadPoolExecutor(together) as pool:
            for name, _ in zip(names, pool.map(self._disturb, names, shares, moments), strict=True):
                seen = f"{self.kills[name]} kills, {len(self.failures)} failures"
                print(f"{name}: {seen}", flush=True)

    def _disturb(self, name: str, kills: int, moments: random.Random) -> None:
        work = WORKS[name]
        folder = self._folder(work)
        begin = time.monotonic()
        expected = self._whole(folder, work)
        longest = time.monotonic() - begin
        while kills > 0:
            folder = self._folder(work)
            for _ in range(min(kills, TOGETHER)):
                begin = time.monotonic()
                if not self._kill(folder, work, moments.uniform(0, 1) * longest):
                    # The machine was slower when this was measured.
                    longest = min(longest, time.monotonic() - begin)
                    break
                kills -= 1
                self.kills[name] += 1
            try:
                self.compare(name, folder, self._whole(folder, work), expected)
            except RuntimeError as error:
                self._fail(f"{name}: the next start failed: {error}")
            shutil.rmtree(folder)

    def compare(
        self, name: str, folder: Path, found: dict[str, bytes], expected: dict[str, bytes]
    ) -> None:
        """Notes what differs from an undisturbed run, and temporary files that were left."""
        for what in sorted({*found, *expected}):
            if found.get(what) != expected.get(what):
                self._fail(f"{name}: {what} is not that of an undisturbed run")
        for path in folder.rglob("*"):
            if path.is_dir() and (stale := leftovers(path)):
                self._fail(f"{name}: {', '.join(p.name for p in stale)} was left")

    def _fail(self, failure: str) -> None:
        self.failures.append(failure)
        print(failure, flush=True)

    def _folder(self, work: Work) -> Path:
        """A new folder with all that a work needs."""
        folder = self.place / str(next(self._folders))
        folder.mkdir()
        if work.needs_run:
            shutil.copytree(self.place / FINISHED / "run", folder / "run")
        return folder

    def _kill(self, folder: Path, work: Work, seconds: float) -> bool:
        """Starts a command and kills it; False if it was faster."""
        process = self._start(folder, work)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            self._check_no_orphans(folder)
            return True
        process.communicate()
        return False

    def _check_no_orphans(self, folder: Path) -> None:
        deadline = time.monotonic() + AT_ONCE
        while left := processes_of(folder):
            if time.monotonic() > deadline:
                self._fail(f"processes {left} were left of {folder}")
                return
            time.sleep(0.05)

    def _whole(self, folder: Path, work: Work) -> dict[str, bytes]:
        """Lets a command come to its end; returns what it printed and all files."""
        process = self._start(folder, work)
        said, complained = process.communicate()
        if process.returncode:
            raise RuntimeError(f"{process.args}: {complained}")
        self._check_no_orphans(folder)
        files = [p for p in folder.rglob("*") if p.is_file() and not {*UNLIKE} & {*p.parts}]
        return {"output": TAKEN.sub("", said).encode()} | {
            str(path.relative_to(folder)): without_times(path) for path in files
        }

    def _start(self, folder: Path, work: Work) -> subprocess.Popen[str]:
        environment = os.environ | {TOKEN: str(folder), "OMP_NUM_THREADS": "1"}
        return python("-m", "datadistill", *work.command(folder), cwd=folder, env=environment)


def without_times(path: Path) -> bytes:
    """The bytes of a file; of a log, a page or a table, without what is never the same."""
    if path.name == "report.html":
        return TIME_IN_PAGE.sub(b"", path.read_bytes())
    if path.name == "table.json":
        return TIME_IN_TABLE.sub(b"", path.read_bytes())
    if path.suffix != ".jsonl":
        return path.read_bytes()
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return repr([{k: v for k, v in row.items() if k not in UNLIKE} for row in rows]).encode()


def processes_of(folder: Path) -> list[int]:
    """The processes that a command in this folder has started, from the system's own list."""
    wanted, found = f"{TOKEN}={folder}\0".encode(), list[int]()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (path / "environ").read_bytes() + b"\0":
                found.append(int(path.name))
        except OSError:  # it has ended, or is another user's
            continue
    return found
