"""The signals that ask a program to end: Ctrl-C, and those of schedulers and terminals."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from types import FrameType

POLITE = tuple(getattr(signal, name) for name in ("SIGHUP", "SIGUSR1") if hasattr(signal, name))
"""A closed terminal, and a scheduler's warning. They may come repeatedly, and mean the same."""
ENDING = (signal.SIGINT, signal.SIGTERM, *POLITE)


class Terminated(KeyboardInterrupt):
    """A signal other than Ctrl-C has asked the program to end: nobody has decided against it."""


def interruption(number: int | None) -> type[KeyboardInterrupt]:
    """What to raise after a signal; None is one that another process has received."""
    return KeyboardInterrupt if number == signal.SIGINT else Terminated


@dataclass(frozen=True)
class _Handler:
    receive: Callable[[int], None]

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        if number in POLITE:
            _let_go_of_a_closed_terminal()
        self.receive(number)


@contextlib.contextmanager
def receiving(receive: Callable[[int], None]) -> Generator[None]:
    """Calls a function for every signal that asks the program to end.

    Only the main thread of a program receives signals; in other threads nothing changes. SIGHUP
    and SIGUSR1 are left alone if they are ignored, as under ``nohup``, or if the user's own
    program handles them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = _Handler(receive)
    before = {number: signal.signal(number, handler) for number in ENDING if _is_ours(number)}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, signal.SIG_DFL if earlier is None else earlier)


def _is_ours(number: int) -> bool:
    current = signal.getsignal(number)
    return number not in POLITE or current == signal.SIG_DFL or isinstance(current, _Handler)


def _let_go_of_a_closed_terminal() -> None:
    """What is printed from now on is lost, rather than an error that keeps us from saving."""
    for descriptor in (1, 2):
        try:
            os.write(descriptor, b"")
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, descriptor)
            os.close(nowhere)
