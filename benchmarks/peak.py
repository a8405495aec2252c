"""Peak memory, measured in processes of their own."""

import contextlib
import ctypes
import json
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

STATUS = Path("/proc/self/status")


def growth_in_own_process(module: str, *arguments: object) -> Any:
    """What ``python -m module arguments`` prints: bytes by which a peak grew, or some such."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def peak_memory() -> int:
    """The most bytes that this process has taken so far."""
    if STATUS.exists():
        # Not ru_maxrss, which on Linux begins at the size of the process that started this one.
        found = re.search(r"VmHWM:\s*(\d+) kB", STATUS.read_text())
        assert found
        return 1024 * int(found[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )


def resident_memory() -> int:
    """The bytes that this process takes now; from here on the peak is counted anew.

    Growth above an earlier peak would hide what fits below it, and memory that the process has
    freed but kept would hide what fits into it: it is given back first. Where neither can be told,
    it is the peak so far.
    """
    if not STATUS.exists():
        return peak_memory()
    with contextlib.suppress(AttributeError, OSError):  # other C libraries do not have it
        ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return peak_memory()
