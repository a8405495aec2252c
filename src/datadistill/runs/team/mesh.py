"""The connections over which the processes of a run add up tensors."""

import os
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import PrefixStore  # pyright: ignore[reportPrivateImportUsage]

from ...errors import ConfigError
from .secret import Secret, forged
from .signed_store import LENGTH, SignedStore

TIMEOUT = 600.0
"""Seconds that processes wait for each other in one outer step; $DATADISTILL_TIMEOUT by default."""
GLANCE = 0.05  # between two looks at whether the others live
PAUSE = 1e-4  # between two looks at whether a sum is there
PATIENCE = 1.0  # to leave

Watch = Callable[[], None]
"""Called while waiting; raises if there is nothing to wait for any more."""


class Mesh:
    """Torch's process group, of which every connection has proved the secret.

    Waiting is done in Python, a short sleep at a time, so that signals are heard meanwhile.

    Args:
        store: Through which the processes find each other.
        rank: The number of this process.
        size: How many there are.
        secret: What each must prove.
    """

    def __init__(self, store: SignedStore, rank: int, size: int, secret: Secret) -> None:
        self._store, self._rank, self._size, self._secret = store, rank, size, secret
        self._connecting: threading.Thread | None = None

    @property
    def is_connected(self) -> bool:
        """Whether there is a process group."""
        return dist.is_initialized()

    def connect(self, watch: Watch) -> None:
        """Connects every process with every other."""
        nccl = torch.cuda.is_available() and dist.is_nccl_available()
        # Processes find each other by the number of the group, which torch counts in each process.
        # An earlier group that could not be connected would count here and not in the others.
        if not dist.is_initialized():
            dist.distributed_c10d._world.group_count = 0  # pyright: ignore[reportPrivateUsage]
        failed: list[Exception] = []

        def initialize() -> None:
            try:
                dist.init_process_group(
                    "cpu:gloo,cuda:nccl" if nccl else "gloo",
                    store=PrefixStore("group", self._store),
                    rank=self._rank,
                    world_size=self._size,
                    timeout=timeout(),
                )
            except Exception as error:
                failed.append(error)

        # In a thread, since torch does not hear signals.
        self._connecting = threading.Thread(target=initialize, daemon=True)
        self._connecting.start()
        while self._connecting.is_alive():
            watch()
            self._connecting.join(GLANCE)
        if failed:
            raise failed[0]
        self._prove(watch)

    def run(self, watch: Watch, collective: Callable[..., Any], *arguments: Any) -> None:
        """Begins a collective and waits for its end."""
        work = collective(*arguments, async_op=True)
        while not completed(work, within=GLANCE):
            try:
                watch()
            except Exception:
                # A process that has ended may have done its part before.
                if not completed(work, within=PATIENCE):
                    raise
        work.wait()

    def leave(self) -> None:
        """Ends the connections; does not wait for a process that hangs."""
        self._store.close()
        if self._connecting is not None:
            self._connecting.join(PATIENCE)
        if dist.is_initialized():
            thread = threading.Thread(target=dist.destroy_process_group, daemon=True)
            thread.start()
            thread.join(PATIENCE)

    def _prove(self, watch: Watch) -> None:
        """Refuses a connection that something else than a process of this run has made.

        Gloo accepts whoever is first to connect. Nobody can enter a connection later.
        """
        mine = b"".join(self._proof(self._rank, other) for other in range(self._size))
        received = torch.empty(self._size * LENGTH, dtype=torch.uint8)
        sent = torch.frombuffer(bytearray(mine), dtype=torch.uint8)
        self.run(watch, dist.all_to_all_single, received, sent)
        for other, proof in enumerate(received.view(self._size, LENGTH)):
            if not self._secret.proves(proof.numpy().tobytes(), *_between(other, self._rank)):
                raise forged(f"The connection with process {other}")

    def _proof(self, sender: int, receiver: int) -> bytes:
        return self._secret.proof(*_between(sender, receiver))


def completed(work: Any, within: float) -> bool:
    """Whether a collective ends in so many seconds."""
    deadline = time.monotonic() + within
    while not work.is_completed() and time.monotonic() < deadline:
        time.sleep(PAUSE)
    return work.is_completed()


def timeout() -> timedelta:
    """How long processes wait for each other."""
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


def _between(sender: int, receiver: int) -> tuple[bytes, bytes, bytes]:
    return b"connection", str(sender).encode(), str(receiver).encode()
