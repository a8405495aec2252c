"""Warnings about this machine, each told once in a process.

They go to the logger ``datadistill``: to standard error, unless the program says otherwise.
"""

import logging
from functools import cache

log = logging.getLogger("datadistill")


def warn(text: str) -> None:
    """Tells the user something that changes a result or takes longer."""
    log.warning("%s", text)


@cache
def warn_once(text: str) -> None:
    """The same, but not a second time in this process."""
    warn(text)
