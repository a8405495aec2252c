"""How fast an outer step is: against plain PyTorch, and against the machine."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from ...core.adjoint import StoredGraph
from ...core.distiller import Distiller
from ...core.engine import PlainEngine
from ...durations import time_text
from ...engine.chained import is_chained
from ...engine.knowledge import Ways, ways_of
from ...engine.team import Team
from ...engine.traced import is_traced
from ..distillation import Distillation
from ..preparation import computed_by
from .cost import Cost

TRIALS = 3
SECONDS = 20.0
"""After these, no more trials are made."""
LONG_SECONDS = 10.0
"""An outer step that takes longer is not compared with plain PyTorch, and none of more than"""
MOST_UPDATES = 100
"""whose graphs would have to be kept."""
SIZE = 1024
"""Of the matrices whose product is the machine's peak."""

Updates = Literal["C", "traced", "autograd"]
UPDATES: dict[Updates, str] = {
    "C": "Each update is one call of C code, and so is the way back through it.",
    "traced": "Updates run as straight-line code.",
    "autograd": "Updates could not be traced: they are computed by autograd.",
}


@dataclass(frozen=True)
class Speed:
    """Processor time of an outer step on one thread.

    Attributes:
        networks: J.
        ours: Seconds.
        plain: Seconds of plain PyTorch: networks one after the other, all graphs kept.
        operations: Floating-point operations that it needs.
        peak: Those that a large matrix product makes in a second.
        ways: How the functions are computed that the network calls.
        updates: How updates are made: by calls of C, as straight-line code, or by autograd.
    """

    networks: int
    ours: float
    plain: float
    operations: float
    peak: float
    ways: Ways
    updates: Updates

    @property
    def ratio(self) -> float:
        """How many times as fast as plain PyTorch."""
        return self.plain / self.ours

    @property
    def share(self) -> float:
        """The share of the peak, from 0 to 1."""
        return self.operations / self.peak / self.ours

    def lines(self) -> list[str]:
        """The same in words."""
        least = self.operations / self.peak
        return [
            *_lines(self.ways),
            UPDATES[self.updates],
            f"Outer step, one thread, processor time: {time_text(self.ours)}; plain PyTorch "
            f"{time_text(self.plain)}: {self.ratio:.2f} times as fast.",
            f"{100 * self.share:.0f} % of the peak of a matrix product, at which it would take "
            f"{time_text(least)}.",
        ]


def _lines(ways: Ways) -> list[str]:
    return [
        f"Computed by {way}: {', '.join(f'{n} × {name}' for name, n in sorted(names.items()))}."
        for way, names in ways.items()
    ]


def speed_lines(distillation: Distillation, cost: Cost) -> list[str]:
    """How fast a run is, as far as that is measured in a short time."""
    distiller = distillation.distiller
    if distiller.network.device.type != "cpu" or distillation.config.engine == "plain":
        return []
    updates = distillation.config.steps * distillation.config.epochs
    if cost.outer_step > LONG_SECONDS or updates > MOST_UPDATES:
        return _lines(ways_of(distiller.network))
    return measure_speed(distillation).lines()


def measure_speed(distillation: Distillation) -> Speed:
    """Makes a few outer gradients in both ways, alternately; the best of each counts."""
    distiller, batch, state = (
        computed_by(distillation, Team(0, 1)),
        distillation.batch(0),
        distillation.late(),
    )
    one = replace(
        distiller,
        config=replace(distiller.config, networks=1),
        own_engine=PlainEngine(distiller.network, distiller.objective),
        adjoint=StoredGraph() if distiller.adjoint.is_exact else distiller.adjoint,
    )
    networks, threads = distiller.networks, torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with Operations() as counted:
            one.gradient(state, batch)
        ours, plain = _alternately(
            lambda: distiller.gradient(state, batch), lambda: one.gradient(state, batch)
        )
        peak = matmul_peak()
    finally:
        torch.set_num_threads(threads)
    return Speed(
        networks,
        ours,
        networks * plain,
        networks * counted.total,
        peak,
        ways_of(distiller.network),
        _updates(distiller),
    )


def _updates(distiller: Distiller) -> Updates:
    network = distiller.network
    if is_chained(network, distiller.objective):
        return "C"
    return "traced" if is_traced(network) else "autograd"


def _alternately(*sides: Callable[[], object]) -> list[float]:
    """The best processor times; a first turn of each is not counted."""
    times: list[list[float]] = []
    begin = time.process_time()
    while len(times) < 2 or (len(times) <= TRIALS and time.process_time() - begin < SECONDS):
        times.append([seconds(side) for side in sides])
    return [min(own) for own in zip(*times[1:], strict=True)]


def seconds(work: Callable[[], object]) -> float:
    """The processor time that some work takes."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def matmul_peak() -> float:
    """Floating-point operations a second of one large float32 matrix product, on one thread."""
    a, b = torch.ones(SIZE, SIZE), torch.ones(SIZE, SIZE)
    return 2 * SIZE**3 / min(seconds(lambda: a @ b) for _ in range(2 + TRIALS))


class Operations(TorchDispatchMode):
    """Counts the floating-point operations of matrix products and convolutions.

    ``FlopCounterMode`` counts the same, but hangs hooks on modules that second derivatives refuse.

    Attributes:
        total: How many there were.
    """

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Lets the operation happen, and counts it."""
        found = func(*args, **(kwargs or {}))
        count = flop_registry.get(func.overloadpacket)
        if count is not None:
            self.total += count(*args, **(kwargs or {}), out_val=found)
        return found
