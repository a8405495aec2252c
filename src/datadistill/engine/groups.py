"""Networks in groups side by side, several groups at a time."""

import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TypeVar

import torch

LARGEST_GROUP = 8  # networks; more are no faster, and fewer groups keep fewer threads busy

FEW_GROUPS = 8

Result = TypeVar("Result")
Work = Callable[[range, Callable[[], None]], Result]
"""Computes a group of networks, given their numbers and a function to call now and then.

The function raises :class:`StoppedError` where the work is no longer wanted.
"""


class StoppedError(Exception):
    """Another group has failed, or the user has had enough."""


@dataclass(frozen=True)
class Groups:
    """How networks are divided.

    Attributes:
        networks: How many there are.
        size: How many are side by side in a group.
        workers: How many groups are computed at the same time, each by one thread; 0 leaves the
            threads to torch, one group after the other.
    """

    networks: int
    size: int
    workers: int

    @classmethod
    def within(
        cls, memory: int, networks: int, *, each: int, besides: int, threads: int
    ) -> "Groups":
        """Divides networks into the largest groups that are worth it and that memory holds.

        Memory bounds the size of a group before the number of workers: which networks are in
        a group does not depend on the number of threads.

        Args:
            memory: Memory limit in bytes.
            networks: How many there are.
            each: Bytes of one network.
            besides: Bytes that a group needs in addition.
            threads: The most groups at the same time; 1 if only one thread may compute them.
        """
        most = max(1, min(LARGEST_GROUP, (memory - besides) // each))
        groups = math.ceil(networks / most)
        if groups < FEW_GROUPS:  # as many for each thread
            groups = min(networks, max(2, 2 ** math.ceil(math.log2(groups))))
        size = math.ceil(networks / groups)
        if threads == 1 or size == networks:
            return cls(networks, size, workers=0)
        fitting = max(1, memory // (besides + size * each))
        return cls(networks, size, min(threads, fitting, math.ceil(networks / size)))

    @property
    def numbers(self) -> list[range]:
        """The numbers of the networks of each group."""
        begins = range(0, self.networks, self.size)
        return [range(begin, min(begin + self.size, self.networks)) for begin in begins]

    def each(self, work: Work[Result]) -> list[Result]:
        """Returns what ``work`` gives for each group, in order."""
        if not self.workers:
            return [work(numbers, lambda: None) for numbers in self.numbers]
        stop = threading.Event()

        def wanted() -> None:
            if stop.is_set():
                raise StoppedError

        def one(numbers: range) -> Result:
            wanted()
            try:
                return work(numbers, wanted)
            except BaseException:
                stop.set()
                raise

        # One thread for each group: threads that share a group wait for each other all the time.
        before = torch.get_num_threads()
        pool = ThreadPoolExecutor(self.workers, initializer=lambda: torch.set_num_threads(1))
        try:
            futures = [pool.submit(one, numbers) for numbers in self.numbers]
            errors = [future.exception() for future in wait(futures, None, FIRST_EXCEPTION).done]
            for error in errors:
                if error and not isinstance(error, StoppedError):
                    raise error
            return [future.result() for future in futures]
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)
            torch.set_num_threads(before)


def in_order(groups: Sequence[Sequence[Result]]) -> list[list[Result]]:
    """(group, test) → (test, group)."""
    return [list(results) for results in zip(*groups, strict=True)]
