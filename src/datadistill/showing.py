"""What the argument ``progress`` of a long call shows: nothing, bars, or what a callback makes."""

import contextlib
from collections.abc import Callable, Generator

from .progress import ProgressCallback, silent

Tell = Callable[[str], None]
"""Receives messages for the user."""


def no_message(_text: str) -> None:
    """Shows nothing."""


@contextlib.contextmanager
def shown(progress: bool | ProgressCallback) -> Generator[ProgressCallback]:
    """The callback of a long call.

    Args:
        progress: True draws bars on a terminal or in a notebook, and prints a line a minute
            anywhere else; False shows nothing; a callback is used as it is.
    """
    if callable(progress):
        yield progress
    elif not progress:
        yield silent
    else:
        from .bars import bars  # rich takes its time, and is needed only here

        with bars() as show:
            yield show


def teller(progress: bool | ProgressCallback) -> Tell:
    """What receives the messages of a long call: they are printed where bars are drawn."""
    if progress is not True:
        return no_message
    from .bars import say

    return say


def urgent_teller(progress: bool | ProgressCallback) -> Tell:
    """The same for messages from a signal handler."""
    if progress is not True:
        return no_message
    from .bars import say_now

    return say_now
