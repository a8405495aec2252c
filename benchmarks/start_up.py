"""Start-up: the processor time of commands that compute nothing, against what is promised."""

import subprocess
import sys
from functools import partial
from typing import Any

from benchmarks.timing import alternately

PROMISED = 0.5  # seconds
COMMANDS = ("--help", "distill --help", "recipes")

PROGRAM = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime)
"""


def processor_time(*command: str) -> float:
    """Seconds of processor time that a command takes; other load hardly changes them."""
    program = [sys.executable, "-c", PROGRAM, *command]
    return float(subprocess.run(program, capture_output=True, check=True, text=True).stdout)


def measure(*, quick: bool) -> dict[str, Any]:
    """The best of several runs of each command."""
    program = (sys.executable, "-m", "datadistill")
    sides = {name: partial(processor_time, *program, *name.split()) for name in COMMANDS}
    best = alternately(sides, trials=2 if quick else 5)
    return {
        "rows": [
            {
                "what": f"datadistill {name}",
                "processor time, s": seconds,
                "against, s": PROMISED,
                "ratio": seconds / PROMISED,
                "at most": 1 if name == "--help" else None,
            }
            for name, seconds in best.items()
        ]
    }
