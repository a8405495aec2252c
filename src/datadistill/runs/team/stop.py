"""Ctrl-C and SIGTERM: the first saves and stops a run, the second quits at once."""

import contextlib
import math
import signal
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from types import FrameType


@dataclass
class Stop:
    """Whether the run was asked to stop.

    Attributes:
        requested: Whether a first signal has come.
        at_once: Whether a first signal stops at once too, since nothing would be lost.
    """

    requested: bool = False
    at_once: bool = False


@contextlib.contextmanager
def stoppable(tell: Callable[[str], None], echo: float = 0.0) -> Generator[Stop]:
    """Turns the first SIGINT or SIGTERM into a request; the second interrupts at once.

    Only the main thread of a program receives signals; in other threads nothing changes.

    Args:
        tell: Receives, from a signal handler, the message that the run will stop.
        echo: Seconds in which another signal is the same one: torchrun passes on what a
            terminal has sent to all processes already.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    first = -math.inf

    def receive(_number: int, _frame: FrameType | None) -> None:
        nonlocal first
        if time.monotonic() - first < echo:
            return
        if stop.requested or stop.at_once:
            raise KeyboardInterrupt
        stop.requested, first = True, time.monotonic()
        tell("Stopping after this outer step. Press Ctrl-C again to quit now.")

    before = {number: signal.signal(number, receive) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
