"""How the processes of a run communicate: tensors by torch.distributed, errors by its store."""

import contextlib
import hashlib
import json
import math
import os
import time
from collections.abc import Callable, Generator, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import PrefixStore, rendezvous  # pyright: ignore[reportPrivateImportUsage]

from ...errors import DataDistillError, TeamError, first_line
from .mesh import GLANCE, PATIENCE, PAUSE, Mesh, timeout
from .secret import Secret, forged
from .signed_store import GoneError, SignedStore

START_TIMEOUT = 3600.0  # to read data and get ready
STOP_TIMEOUT = 10.0  # for a process that does not answer once a stop was requested


class LostError(TeamError):
    """Another process has ended or does not answer: there is nobody to tell of it."""


class Others:
    """The processes that this one has started; by default none."""

    def ended(self) -> str | None:
        """Which has ended and how, if one has."""
        return None

    def close(self) -> None:
        """Ends those that are still running."""


class Link:
    """The connection of one process with all others.

    Args:
        store: Where short messages are left.
        rank: The number of this process.
        size: How many there are.
        secret: What messages must prove.
        others: The processes that this one has started.

    Attributes:
        stop_requested: Tells whether this process was asked to stop: it then no longer waits for
            others that do not answer.
    """

    def __init__(
        self, store: Any, rank: int, size: int, secret: Secret, others: Others | None = None
    ) -> None:
        self.rank, self.size = rank, size
        self._store = SignedStore(PrefixStore("datadistill", store), secret)
        self._mesh = Mesh(self._store, rank, size, secret)
        self._others = others or Others()
        self._gpu: torch.device | None = None
        self.stop_requested: Callable[[], bool] = lambda: False

    @classmethod
    def by_environment(cls, rank: int, size: int, secret: Secret) -> "Link":
        """Meets the others where torchrun's environment variables say."""
        try:
            store, *_ = next(iter(rendezvous("env://", rank, size, timeout=timeout())))
        except (RuntimeError, ValueError) as error:
            address = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
            raise TeamError(
                f"Process {rank} cannot connect to the others at {address}: {first_line(error)}",
                "Check that process 0 is running and reachable.",
            ) from error
        return cls(store, rank, size, secret)

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
        self._put("begun", json.dumps([len(content), _hash(content)]))
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
        length, expected = json.loads(self._store.get("begun"))
        tensor = torch.empty(length, dtype=torch.uint8)
        self._finish(dist.broadcast, tensor, 0)
        content = tensor.numpy().tobytes()
        if _hash(content) != expected:
            raise forged("The configuration")
        return content

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
            if self.rank and not isinstance(error, LostError | GoneError):
                with contextlib.suppress(TeamError):
                    self._put(f"error/{self.rank}", json.dumps(_told(error)))
            raise
        finally:
            with contextlib.suppress(TeamError):
                self._put("over" if self.rank == 0 else f"done/{self.rank}")
            self._others.close()  # first, since torch waits for one that hangs
            self._mesh.leave()

    def _part(self) -> None:
        """Process 0 is the last to leave, since messages are kept in it."""
        if self.rank == 0:
            self._put("over")
            if self._mesh.is_connected:
                done = [f"done/{rank}" for rank in range(1, self.size)]
                deadline = time.monotonic() + PATIENCE
                while not self._has(*done) and not self._others.ended():
                    if time.monotonic() > deadline:
                        break
                    time.sleep(PAUSE)

    def _finish(self, collective: Callable[..., Any], *arguments: Any) -> None:
        """Begins a collective and waits for its end, or for that of a process."""
        try:
            if not self._mesh.is_connected:
                self.wait_until_all_are_here()
                self._mesh.connect(self._watch())
            self._mesh.run(self._watch(), collective, *arguments)
        except (RuntimeError, TimeoutError) as error:
            raise self._failure(error) from error

    def _watch(self) -> Callable[[], None]:
        """Raises once it is known that another process has ended or hangs."""
        deadline = math.inf

        def watch() -> None:
            nonlocal deadline
            if self._in_trouble():
                raise self._failure(None)
            if self.stop_requested():
                deadline = min(deadline, time.monotonic() + STOP_TIMEOUT)
            if time.monotonic() > deadline:
                raise LostError(
                    f"Another process has not answered for {STOP_TIMEOUT:.0f} s.",
                    "Check its messages.",
                )

        return watch

    def _wait_for(self, keys: Sequence[str], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not self._has(*keys):
            if self._in_trouble():
                raise self._failure(None)
            late = [key.rpartition("/")[2] for key in keys if not self._has(key)]
            if late and (self.stop_requested() or time.monotonic() > deadline):
                raise LostError(
                    f"Of {self.size} processes, these are not ready: {', '.join(late)}.",
                    "Check their messages and the network between the machines.",
                )
            time.sleep(GLANCE)

    def _in_trouble(self) -> bool:
        """Whether it is known that another process has ended or failed."""
        return bool(self._others.ended() or (self.rank == 0 and self._errors()))

    def _failure(self, error: Exception | None) -> TeamError:
        """What has happened: what a process has told, or how it ended, or what is seen here."""
        deadline = time.monotonic() + (PATIENCE if self.rank == 0 else 0)
        told = self._errors()
        while not told and time.monotonic() < deadline:
            time.sleep(GLANCE)
            told = self._errors()
            if ended := self._others.ended():
                told = self._errors() or [ended, "It may have run out of memory."]
        if told:
            return LostError(*told)
        return LostError(
            f"Another process has ended or does not respond: {first_line(error)}",
            "Check its messages.",
        )

    def _errors(self) -> list[str]:
        for rank in range(1, self.size):
            if self._has(f"error/{rank}"):
                what, remedy = json.loads(self._store.get(f"error/{rank}"))
                return [f"Process {rank} of {self.size} failed: {what}", remedy]
        return []

    def _has(self, *keys: str) -> bool:
        return self._store.check(keys)

    def _put(self, key: str, value: str = "yes") -> None:
        self._store.set(key, value)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _told(error: Exception) -> list[str]:
    if isinstance(error, DataDistillError):
        return [error.what, error.remedy]
    return [
        f"{type(error).__name__}: {first_line(error)}",
        "Run again with --debug to see its messages.",
    ]
