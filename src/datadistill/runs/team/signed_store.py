"""The store of short messages, each signed with the run's secret."""

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from torch.distributed import Store  # pyright: ignore[reportPrivateImportUsage]

from ...errors import TeamError, first_line
from .secret import Secret, forged

PURPOSE = b"store"
LENGTH = 32  # bytes of a proof
PAUSE = 0.01
SHORT = timedelta(seconds=10)  # to get a message that is there


class GoneError(TeamError):
    """The process that keeps the messages has ended."""


class SignedStore(Store):
    """Signs what is written, and refuses what is not signed.

    Gloo also finds its peers through it: their addresses are messages like any other. The proof
    covers the name of a message, so that one cannot be passed off as another; each is written
    once.

    Args:
        store: Torch's store, in which anybody who can connect can write.
        secret: What messages must prove.
    """

    def __init__(self, store: Any, secret: Secret) -> None:
        super().__init__()
        store.set_timeout(SHORT)
        self._store = store
        self._secret = secret
        self._proven: set[str] = set()
        self._closed = False

    def set(self, key: str, value: str | bytes) -> None:
        """Writes a message."""
        content = value.encode() if isinstance(value, str) else bytes(value)
        proof = self._secret.proof(PURPOSE, key.encode(), content)
        try:
            self._store.set(key, proof + content)
        except RuntimeError as error:
            raise gone(error) from error

    def get(self, key: str) -> bytes:
        """Reads a message; raises if it was not written by a process of this run."""
        try:
            signed: bytes = self._store.get(key)
        except RuntimeError as error:
            raise gone(error) from error
        proof, content = signed[:LENGTH], signed[LENGTH:]
        if not self._secret.proves(proof, PURPOSE, key.encode(), content):
            raise forged(f"The message {key!r}")
        self._proven.add(key)
        return content

    def check(self, keys: Sequence[str]) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Whether all these messages are there; raises if one of them is forged."""
        try:
            there: bool = self._store.check(list(keys))
        except RuntimeError as error:
            raise gone(error) from error
        if there:
            for key in set(keys) - self._proven:
                self.get(key)
        return there

    def wait(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, keys: Sequence[str], timeout: timedelta = SHORT
    ) -> None:
        """Waits until all these messages are there."""
        deadline = time.monotonic() + timeout.total_seconds()
        while not self.check(keys):
            if self._closed or time.monotonic() > deadline:
                raise TimeoutError(f"No message {', '.join(keys)}")
            time.sleep(PAUSE)

    def close(self) -> None:
        """Ends all waiting."""
        self._closed = True


def gone(error: Exception) -> GoneError:
    """What to raise where the store cannot be reached."""
    return GoneError(f"Process 0 has ended: {first_line(error)}", "Check its messages.")
