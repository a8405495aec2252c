"""Two sides measured alternately in one run, so that other load on the machine hits both."""

import time
from collections.abc import Callable, Mapping

import torch

from datadistill.runs.planning.speed import Operations

__all__ = ["Operations", "alternately", "matmul_peak"]

THREADS = torch.get_num_threads()
"""PyTorch's own choice, before any side makes another."""


REST = 0.4  # seconds


def alternately(sides: Mapping[str, Callable[[], object]], trials: int) -> dict[str, float]:
    """The best seconds of each side; a first turn of each is not counted.

    A side that returns a number has taken its time itself.

    Before each turn there is a rest: threads of OpenMP go on spinning for 0.2 s after their work,
    and would take a core from the side that comes next.
    """
    best = dict.fromkeys(sides, float("inf"))
    for trial in range(trials + 1):
        for name, work in sides.items():
            time.sleep(REST)
            begin = time.perf_counter()
            own = work()
            if trial:
                seconds = own if isinstance(own, float) else time.perf_counter() - begin
                best[name] = min(best[name], seconds)
    return best


def matmul_peak(size: int = 2048, trials: int = 5) -> float:
    """Floating-point operations a second of one large float32 matrix product."""
    a, b = torch.randn(size, size), torch.randn(size, size)
    best = alternately({"matmul": lambda: a @ b}, trials)["matmul"]
    return 2 * size**3 / best
