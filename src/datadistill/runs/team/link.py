"""How the processes of a run communicate: tensors by torch.distributed, errors by its store."""

import contextlib
import json
import math
import os
import time
from collections.abc import Callable, Generator, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import PrefixStore, rendezvous  # pyright: ignore[reportPrivateImportUsage]

from ...errors import ConfigError, DataDistillError, TeamError

TIMEOUT = 600.0
"""Seconds that processes wait for each other in one outer step; $DATADISTILL_TIMEOUT by default."""
START_TIMEOUT = 3600.0  # to read data and get ready
PATIENCE = 1.0  # to learn why a process has ended
GLANCE = 0.05  # between two looks at what others have left in the store, or whether they live
PAUSE = 1e-4  # between two looks at whether a sum is there

Ended = Callable[[], str | None]
"""Tells which process has ended, if one has."""


class Link:
    """The connection of one process with all others.

    Waiting is done in Python, a short sleep at a time, so that signals are heard meanwhile.

    Args:
        store: Where short messages are left.
        rank: The number of this process.
        size: How many there are.
        ended: Tells of processes that this one has started, and that have ended.
    """

    def __init__(self, store: Any, rank: int, size: int, ended: Ended = lambda: None) -> None:
        self._store = PrefixStore("datadistill", store)
        self.rank, self.size, self._ended = rank, size, ended
        self._gpu: torch.device | None = None

    @classmethod
    def by_environment(cls, rank: int, size: int) -> "Link":
        """Meets the others where torchrun's environment variables say."""
        try:
            store, *_ = next(iter(rendezvous("env://", rank, size, timeout=_timeout())))
        except (RuntimeError, ValueError) as error:
            address = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
            raise TeamError(
                f"Process {rank} cannot connect to the others at {address}: {_first_line(error)}",
                "Check that process 0 is running and reachable.",
            ) from error
        return cls(store, rank, size)

    def through(self, gpu: torch.device | None) -> None:
        """Sums over NCCL from this GPU; over gloo if there is none."""
        self._gpu = gpu

    def sum(self, flat: Tensor) -> Tensor:
        """Adds up the tensors of all processes; all get the same bits."""
        total = flat.to(self._gpu or "cpu", copy=True)
        self._finish(dist.all_reduce, total)
        return total.to(flat.device)

    def send(self, content: bytes) -> None:
        """Sends the others what they need to begin, and waits until they are ready."""
        self._put("begun", str(len(content)))
        tensor = torch.frombuffer(bytearray(content), dtype=torch.uint8)
        self._finish(dist.broadcast, tensor, 0)
        self._wait_for([f"ready/{rank}" for rank in range(1, self.size)], START_TIMEOUT)

    def wait_until_all_are_here(self) -> None:
        """Waits until every process has started."""
        self._put(f"here/{self.rank}")
        self._wait_for([f"here/{rank}" for rank in range(self.size)], START_TIMEOUT)

    def receive(self) -> bytes | None:
        """What process 0 sends; None if it has ended without."""
        self._put(f"here/{self.rank}")
        while not self._has("begun"):
            if self._has("over"):
                return None
            time.sleep(GLANCE)
        tensor = torch.empty(int(self._store.get("begun")), dtype=torch.uint8)
        self._finish(dist.broadcast, tensor, 0)
        return tensor.numpy().tobytes()

    def ready(self) -> None:
        """Tells process 0 that this one is."""
        self._put(f"ready/{self.rank}")

    def finish(self) -> None:
        """Tells process 0 that this one's work is finished, and stays until all is over."""
        self._put(f"finished/{self.rank}")
        while not self._has("over"):
            time.sleep(GLANCE)

    def wait_until_finished(self) -> None:
        """Waits for the work of the others, however long it takes."""
        self._wait_for([f"finished/{rank}" for rank in range(1, self.size)], math.inf)

    @contextlib.contextmanager
    def joined(self) -> Generator["Link"]:
        """Takes part until the end of the block; a worker that fails tells process 0 why."""
        try:
            yield self
            self._part()
        except Exception as error:
            if self.rank and not isinstance(error, TeamError):
                with contextlib.suppress(TeamError):
                    self._put(f"error/{self.rank}", json.dumps(_told(error)))
            raise
        finally:
            with contextlib.suppress(TeamError):
                self._put("over" if self.rank == 0 else f"done/{self.rank}")
            if dist.is_initialized():
                dist.destroy_process_group()

    def _part(self) -> None:
        """Process 0 is the last to leave, since messages are kept in it."""
        if self.rank == 0:
            self._put("over")
            if dist.is_initialized():
                done = [f"done/{rank}" for rank in range(1, self.size)]
                deadline = time.monotonic() + PATIENCE
                while not self._has(*done) and not self._ended() and time.monotonic() < deadline:
                    time.sleep(PAUSE)

    def _meet(self) -> None:
        """Connects every process with every other."""
        self.wait_until_all_are_here()
        nccl = torch.cuda.is_available() and dist.is_nccl_available()
        try:
            dist.init_process_group(
                "cpu:gloo,cuda:nccl" if nccl else "gloo",
                store=PrefixStore("group", self._store),
                rank=self.rank,
                world_size=self.size,
                timeout=_timeout(),
            )
        except RuntimeError as error:
            raise self._failure(error) from error

    def _finish(self, collective: Callable[..., Any], *arguments: Any) -> None:
        """Begins a collective and waits for its end, or for that of a process."""
        if not dist.is_initialized():
            self._meet()
        try:
            work = collective(*arguments, async_op=True)
            while not _completed(work, within=GLANCE):
                # One that has ended may have done its part before.
                if self._in_trouble() and not _completed(work, within=PATIENCE):
                    raise self._failure(None)
            work.wait()
        except RuntimeError as error:
            raise self._failure(error) from error

    def _wait_for(self, keys: Sequence[str], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not self._has(*keys):
            if self._in_trouble():
                raise self._failure(None)
            if time.monotonic() > deadline:
                late = [key.rpartition("/")[2] for key in keys if not self._has(key)]
                raise TeamError(
                    f"Of {self.size} processes, these are not ready: {', '.join(late)}.",
                    "Check their messages and the network between the machines.",
                )
            time.sleep(GLANCE)

    def _in_trouble(self) -> bool:
        """Whether it is known that another process has ended or failed."""
        return bool(self._ended() or (self.rank == 0 and self._errors()))

    def _failure(self, error: Exception | None) -> TeamError:
        """What has happened: what a process has told, or how it ended, or what is seen here."""
        deadline = time.monotonic() + (PATIENCE if self.rank == 0 else 0)
        told = self._errors()
        while not told and time.monotonic() < deadline:
            time.sleep(GLANCE)
            told = self._errors()
            if ended := self._ended():
                told = self._errors() or [ended, "It may have run out of memory."]
        if told:
            return TeamError(*told)
        return TeamError(
            f"Another process has ended or does not respond: {_first_line(error)}",
            "Check its messages.",
        )

    def _errors(self) -> list[str]:
        for rank in range(1, self.size):
            if self._has(f"error/{rank}"):
                what, remedy = json.loads(self._store.get(f"error/{rank}"))
                return [f"Process {rank} of {self.size} failed: {what}", remedy]
        return []

    def _has(self, *keys: str) -> bool:
        try:
            return self._store.check(list(keys))
        except RuntimeError as error:
            raise _gone(error) from error

    def _put(self, key: str, value: str = "yes") -> None:
        try:
            self._store.set(key, value)
        except RuntimeError as error:
            raise _gone(error) from error


def _completed(work: Any, within: float) -> bool:
    deadline = time.monotonic() + within
    while not work.is_completed() and time.monotonic() < deadline:
        time.sleep(PAUSE)
    return work.is_completed()


def _timeout() -> timedelta:
    text = os.environ.get("DATADISTILL_TIMEOUT", str(TIMEOUT))
    try:
        seconds = float(text)
        if not 0 < seconds < 1e6:
            raise ValueError
    except ValueError:
        raise ConfigError(
            f"The environment variable DATADISTILL_TIMEOUT is {text!r}.",
            "Set it to seconds, e.g. 600.",
        ) from None
    return timedelta(seconds=seconds)


def _told(error: Exception) -> list[str]:
    if isinstance(error, DataDistillError):
        return [error.what, error.remedy]
    return [
        f"{type(error).__name__}: {_first_line(error)}",
        "Run again with --debug to see its messages.",
    ]


def _gone(error: Exception) -> TeamError:
    return TeamError(f"Process 0 has ended: {_first_line(error)}", "Check its messages.")


def _first_line(error: Exception | None) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
