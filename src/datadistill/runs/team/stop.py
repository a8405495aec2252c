"""The first signal saves and stops a run; the second quits at once."""

import contextlib
import math
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass

from .signals import POLITE, interruption, receiving


@dataclass
class Stop:
    """Whether the run was asked to stop.

    Attributes:
        signal: The first signal that has come, if any.
        at_once: Whether a first signal stops at once too, since nothing would be lost.
    """

    signal: int | None = None
    at_once: bool = False

    @property
    def requested(self) -> bool:
        """Whether a first signal has come."""
        return self.signal is not None


@contextlib.contextmanager
def stoppable(tell: Callable[[str], None], echo: float = 0.0) -> Generator[Stop]:
    """Turns the first signal into a request; a second Ctrl-C or SIGTERM interrupts at once.

    Args:
        tell: Receives, from a signal handler, the message that the run will stop.
        echo: Seconds in which another signal is the same one: torchrun passes on what a
            terminal has sent to all processes already.
    """
    stop, first = Stop(), -math.inf

    def receive(number: int) -> None:
        nonlocal first
        repeated = stop.requested and number in POLITE
        if repeated or time.monotonic() - first < echo:
            return
        if stop.requested or stop.at_once:
            raise interruption(number)
        stop.signal, first = number, time.monotonic()
        tell("Stopping after this outer step. Press Ctrl-C again to quit now.")

    with receiving(receive):
        yield stop
