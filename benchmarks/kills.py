"""Kills live processes at random moments, lets a new start finish, and compares all bytes.

    python -m benchmarks.kills --count 300

Every command that computes is killed by SIGKILL, with one and with two processes. Afterwards no
process of it may be left, and the next start must end with the bytes of an undisturbed one and
without temporary files of the killed one. Commands are forks of a process that has imported torch,
so that kills fall into their work and not into imports.
"""

import argparse
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from tests.processes import python

from datadistill.files import leftovers
from datadistill.runs.store.folder import RunFolder

TOKEN = "DATADISTILL_KILLS"
"""An environment variable by which the workers of a command are found."""
AT_ONCE = 10.0  # seconds in which workers end with their process 0, on a busy machine
DATA, FINISHED = "data.npz", "finished"
TOGETHER = 4  # kills of one piece of work before it may finish
UNLIKE = ("seconds", "check", "checkpoints", ".lock")

DISTILL = (
    *("--model", "linear", "--networks", "2", "--steps", "2", "--quiet"),
    *("--batch-size", "32", "--iterations", "60", "--validate-every", "15", "--threads", "1"),
    *("--test-networks", "2", "--checkpoint-every", "5", "--engine", "fast"),
)
POOL = (
    *("--model", "mlp", "--model-args", "hidden=6", "--epochs", "30"),
    *(
        "--batch-size",
        "16",
        "--validation",
        "0.2",
        "--networks",
        "34",
        "--held-out",
        "16",
        "--pool",
        "pool",
        "--quiet",
    ),
    *("--threads", "1"),
)


@dataclass(frozen=True)
class Work:
    """A command to kill.

    Attributes:
        command: What a user would type next in this folder.
        needs_run: Whether it works on a finished run.
    """

    command: Callable[[Path], Sequence[str]]
    needs_run: bool = False


def distilling(processes: str) -> Work:
    """A distillation, which is resumed from the moment that there is something to resume."""

    def command(folder: Path) -> Sequence[str]:
        if RunFolder(folder / "run").is_new:
            data = ["--data", data_of(folder)]
            return ["distill", *data, *DISTILL, "--processes", processes, "--run", "run"]
        return ["resume", "run", "--quiet"]

    return Work(command)


def pretraining(processes: str) -> Work:
    """A pool, which the same command goes on with."""
    return Work(lambda folder: ["pretrain", data_of(folder), *POOL, "--processes", processes])


def using(command: str, *flags: str) -> Work:
    """A command that uses a finished run."""
    return Work(lambda folder: [command, "run", "--data", data_of(folder), *flags], needs_run=True)


def training() -> Work:
    """A network trained on distilled data."""
    flags = ("--output", "out/weights.safetensors", "--overwrite", "--quiet")
    return Work(lambda _: ["train", "run/distilled.safetensors", *flags], needs_run=True)


def data_of(folder: Path) -> str:
    """The data of all works: one file, since its path is a part of the configuration."""
    return str(folder.parent / DATA)


WORKS = {
    "distill": distilling("1"),
    "distill, 2 processes": distilling("2"),
    "pretrain": pretraining("1"),
    "pretrain, 2 processes": pretraining("2"),
    "evaluate": using("evaluate", "--networks", "30", "--json"),
    "evaluate --baselines": using("evaluate", "--baselines", "--networks", "2", "--json"),
    "verify": using("verify", "--json"),
    "train": training(),
}


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

    def run(self, count: int, names: Sequence[str] = (*WORKS,)) -> None:
        """Kills so many processes, in turns of these works."""
        write_data(self.place / DATA)
        if any(WORKS[name].needs_run for name in names):
            (self.place / FINISHED).mkdir()
            self._whole(self.place / FINISHED, WORKS["distill"])
        share, rest = divmod(count, len(names))
        for number, name in enumerate(names):
            self._disturb(name, share + (number < rest))
            print(f"{name}: {self.kills[name]} kills, {len(self.failures)} failures", flush=True)

    def _disturb(self, name: str, kills: int) -> None:
        work = WORKS[name]
        folder = self._folder(work)
        begin = time.monotonic()
        expected = self._whole(folder, work)
        longest = time.monotonic() - begin
        while kills > 0:
            folder = self._folder(work)
            for _ in range(min(kills, TOGETHER)):
                begin = time.monotonic()
                if not self._kill(folder, work, self.moments.uniform(0, 1) * longest):
                    # The machine was slower when this was measured.
                    longest = min(longest, time.monotonic() - begin)
                    break
                kills -= 1
                self.kills[name] += 1
            found = self._whole(folder, work)
            self.compare(name, folder, found, expected)
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
        return {"output": said.encode()} | {
            str(path.relative_to(folder)): without_times(path) for path in files
        }

    def _start(self, folder: Path, work: Work) -> subprocess.Popen[str]:
        environment = os.environ | {TOKEN: str(folder), "OMP_NUM_THREADS": "1"}
        return python("-m", "datadistill", *work.command(folder), cwd=folder, env=environment)


def write_data(path: Path) -> None:
    """A small data set of two channels, of which no picture is drawn."""
    draws = np.random.default_rng(0)
    labels = np.arange(60) % 10
    inputs = draws.normal(size=(60, 2, 7, 7)).astype(np.float32)
    names = ("train_inputs", "train_labels", "test_inputs", "test_labels")
    np.savez(path, **dict(zip(names, (inputs, labels, inputs, labels), strict=True)))


def without_times(path: Path) -> bytes:
    """The bytes of a file; of a log, without what is never the same."""
    if path.name != "metrics.jsonl":
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a campaign and prints what was seen."""
    parser = argparse.ArgumentParser("python -m benchmarks.kills", description=__doc__)
    parser.add_argument("--count", type=int, default=300, help="kills in all")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as place:
        campaign = Campaign(Path(place), random.Random(options.seed))
        campaign.run(options.count)
    for name, kills in campaign.kills.items():
        print(f"{name:24} {kills:4} kills")
    print(f"{campaign.kills.total():29} kills, {len(campaign.failures)} failures")
    return bool(campaign.failures)


if __name__ == "__main__":
    sys.exit(main())
