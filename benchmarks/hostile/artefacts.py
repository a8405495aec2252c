"""Hostile but correctly hashed artefacts, tried in worker processes with limits."""

import multiprocessing as mp
import resource
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path

from .counts import Counts

ADDRESSES = 4 * 2**30
"""Bytes that a worker may allocate beyond what it has: more fails, and is counted."""


def run(numbers: range, seed: int, workers: int, progress: Callable[[int, int], None]) -> Counts:
    """Makes and tries hostile artefacts.

    Args:
        numbers: Which.
        seed: Determines them, with their numbers.
        workers: How many processes try them.
        progress: Called with the number of artefacts that were tried, and of all.
    """
    total, left = Counts(), iter(numbers)
    team = [_Worker(seed) for _ in range(min(workers, len(numbers)))]
    busy = {worker.pipe: worker for worker in team if worker.give(left)}
    while busy:
        for pipe in wait(list(busy)):
            worker = busy.pop(pipe)  # pyright: ignore[reportArgumentType]
            total.add(worker.outcome())
            progress(total.tried, len(numbers))
            if worker.give(left):
                busy[worker.pipe] = worker
    for worker in team:
        worker.end()
    return total


class _Worker:
    """A process that tries artefacts, and is replaced where one ends it."""

    def __init__(self, seed: int) -> None:
        self._seed, self._number = seed, 0
        self._start()

    def _start(self) -> None:
        context = mp.get_context("spawn")
        self.pipe, other = context.Pipe()
        self._process = context.Process(target=_work, args=(other, self._seed), daemon=True)
        self._process.start()
        other.close()

    def give(self, numbers: Iterator[int]) -> bool:
        """Gives the next artefact; returns whether there was one."""
        number = next(numbers, None)
        if number is None:
            return False
        self._number = number
        self.pipe.send(number)
        return True

    def outcome(self) -> Counts:
        """What became of the artefact."""
        try:
            return self.pipe.recv()
        except EOFError:
            self._process.join()
            how = f"number {self._number}: the process ended with {self._process.exitcode}"
            self._start()
            return Counts(tried=1, untyped=1, details=[f"seed {self._seed}, {how}"])

    def end(self) -> None:
        """Ends the process."""
        self.pipe.close()
        self._process.join()


def _work(pipe: Connection, seed: int) -> None:
    import torch

    from .artefact_trial import Trial

    torch.set_num_threads(1)
    trial = Trial(seed)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_addresses() + ADDRESSES, hard))
    try:
        while True:
            pipe.send(trial(pipe.recv()))
    except EOFError:
        return


def _addresses() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
