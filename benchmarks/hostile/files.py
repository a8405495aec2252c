"""A campaign of mutated files of every kind but artefacts, in worker processes with limits."""

import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .counts import Counts

HANGS = 60.0  # seconds after which a worker is ended
ROOM = 2**31  # bytes that a worker may allocate beyond what it has when it starts
Case = tuple[str, int, int]


def run(numbers: range, seed: int, workers: int, progress: Callable[[int, int], None]) -> Counts:
    """Tries mutated files.

    Args:
        numbers: Which; they are spread over all kinds.
        seed: Determines them, with their numbers.
        workers: How many processes try them.
        progress: Called with the number of files that were tried, and of all.
    """
    from .trial import KINDS

    names = [*KINDS]
    cases: Iterator[Case] = ((names[n % len(names)], seed, n) for n in numbers)
    with tempfile.TemporaryDirectory(prefix="hostile-") as home:
        return _tried(cases, [_Worker(home) for _ in range(workers)], len(numbers), progress)


def _tried(
    cases: Iterator[Case],
    workers: "list[_Worker]",
    count: int,
    progress: Callable[[int, int], None],
) -> Counts:
    total, busy = Counts(), [worker for worker in workers if worker.begin(cases)]
    while busy:
        for worker in list(busy):
            if (outcome := worker.outcome()) is None:
                continue
            total.add(outcome)
            progress(total.tried, count)
            if not worker.begin(cases):
                busy.remove(worker)
    for worker in workers:
        worker.end()
    return total


class _Worker:
    """A process that tries one file after the other; one that hangs or dies is replaced."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._context = multiprocessing.get_context("spawn")
        self._start()

    def _start(self) -> None:
        self._connection, theirs = self._context.Pipe()
        self._process = self._context.Process(target=_serve, args=(theirs, self._home), daemon=True)
        self._process.start()
        theirs.close()
        self._connection.recv()  # it is ready

    def begin(self, cases: Iterator[Case]) -> bool:
        """Sends the next case; returns whether there was one."""
        self._case = next(cases, None)
        self._since = time.monotonic()
        if self._case is not None:
            self._connection.send(self._case)
        return self._case is not None

    def outcome(self) -> Counts | None:
        """What became of the case, if that is known by now."""
        try:
            if self._connection.poll(0.02):
                return self._connection.recv()
        except (EOFError, OSError):
            return self._replaced(Counts(tried=1, untyped=1), "killed the process")
        if time.monotonic() - self._since > HANGS:
            return self._replaced(Counts(tried=1, over_time=1), f"more than {HANGS:.0f} s")
        return None

    def _replaced(self, counts: Counts, what: str) -> Counts:
        self.end()
        self._start()
        counts.details = [f"{self._case}: {what}"]
        return counts

    def end(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.join()
        self._connection.close()


def _serve(connection: Any, home: str) -> None:
    """Tries the files that it is asked for, until it is ended."""
    import torch

    from .trial import KINDS, Place, keep

    torch.set_num_threads(1)
    tempfile.tempdir = home
    places: dict[str, Place] = {}
    connection.send("ready")
    while True:
        name, seed, number = connection.recv()
        if name not in places:
            places[name] = Place(KINDS[name])
            places[name].judge(places[name].content)  # imports take their time only once
            _limit_memory()
        content = places[name].case(seed, number)
        counts = places[name].judge(content)
        counts.details = [f"{name}, seed {seed}, case {number}: {d}" for d in counts.details]
        if counts.failed:
            keep(name, f"{seed}-{number}", content)
        connection.send(counts)


def _limit_memory() -> None:
    """Lets an allocation without bound fail here, before it takes the machine's memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    used = next(int(line.split()[1]) for line in lines if line.startswith("VmData:"))
    resource.setrlimit(resource.RLIMIT_DATA, (used * 1024 + ROOM, resource.RLIM_INFINITY))
