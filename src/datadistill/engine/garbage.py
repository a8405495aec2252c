"""Python's search for reference cycles, put off while updates run that make none."""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Generator[None]:
    """Within it, reference cycles are not searched for.

    Straight-line code makes many small objects and no cycles: the search would take a tenth of the
    time of small networks, and find nothing.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
