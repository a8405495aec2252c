"""Memory that is kept for the next update, where the C library would give it back.

glibc asks the system for every large tensor anew, and gives it back as soon as it is freed. The
system clears its pages each time: up to a tenth of the time of an outer step.
"""

import ctypes
import os
from functools import cache

TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3
"""Parameters of glibc's ``mallopt``."""

KEPT = 512 * 2**20
"""Bytes of freed memory at the end of the heap that are not given back."""
LARGE = 128 * 2**20
"""Larger tensors are given back at once."""
AHEAD = 16 * 2**20
"""Bytes that are asked for beyond those needed, so that it is asked less often."""


@cache
def keep_freed_memory() -> bool:
    """Has glibc keep freed memory, once in a process; returns whether it does.

    It does not where there is another C library, or where the user has chosen how it allocates.
    """
    if any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ):
        return False
    try:
        os.confstr("CS_GNU_LIBC_VERSION")
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError, ValueError):
        return False
    chosen = {MMAP_THRESHOLD: LARGE, TRIM_THRESHOLD: KEPT, TOP_PAD: AHEAD}
    return all(mallopt(name, size) for name, size in chosen.items())
