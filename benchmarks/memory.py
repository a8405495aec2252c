"""Peak memory of one outer step above start-up, beside the reference's.

LeNet, 10 steps, minibatch 1024. Each figure comes from a process of its own, whose high-water mark
of resident memory is read before and after one outer step, as a user's run makes it. Start-up is
over when the same side has made one small outer step, which loads the libraries it needs, and has
given back what that step took.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from benchmarks.peak import growth_in_own_process, peak_memory, resident_memory
from benchmarks.processes import late
from benchmarks.reference import gradient, sampled
from benchmarks.speed import prepare
from datadistill.core.adjoint import BackGradient, StoredGraph
from datadistill.models import MLP, LeNet
from datadistill.runs.distillation import Distillation

MODULES: dict[str, Callable[[], nn.Module]] = {"lenet": LeNet, "mlp": lambda: MLP(hidden=512)}
STEPS = 10
GIB = 2**30


def measure(*, quick: bool = False) -> dict[str, Any]:
    """T = 30 and 300 of both sides, and a long unroll; of 4 networks, in quick runs of 1."""
    networks = 1 if quick else 4
    reference, ours, stored = (
        growth(side, 30, 4, trials=3) for side in ("reference", "ours", "stored-graph")
    )
    short, long = longer()
    longest = growth("ours", 3000, networks)
    return {
        "rows": [
            _row("T = 30, J = 4, against the reference", ours, reference, 0.2),
            _row("T = 30, J = 4, against all graphs stored (J = 4 together)", ours, stored, None),
            _row("T = 300 against T = 30, J = 4", long, short, 1.3),
            _row(f"T = 3,000, J = {networks}, against 1 GiB", longest, GIB, 1.0),
        ]
    }


def _row(what: str, ours: int, against: int, at_most: float | None) -> dict[str, Any]:
    return {
        "what": what,
        "peak, MB": round(ours / 1e6),
        "against, MB": round(against / 1e6),
        "ratio": ours / against,
        "at most": at_most,
    }


def growth(
    side: str,
    updates: int,
    networks: int,
    module: str = "lenet",
    batch_size: int = 1024,
    trials: int = 1,
) -> int:
    """Bytes by which one outer step raises the peak of a process of its own: the median.

    Two threads do not always reach their peaks at the same time.
    """
    arguments = (side, updates, networks, module, batch_size)
    found = [growth_in_own_process("benchmarks.memory", *arguments) for _ in range(trials)]
    return sorted(found)[trials // 2]


def longer() -> list[int]:
    """The same for T = 30 and T = 300, J = 4, one after the other in each process.

    So both are above the same start-up, whose memory is not always the same.
    """
    command = ("benchmarks.memory", "ours", "30,300", 4, "lenet", 1024)
    found = [growth_in_own_process(*command) for _ in range(3)]
    return [sorted(column)[1] for column in zip(*found, strict=True)]


def _growth(
    side: str, lengths: list[int], networks: int, module: str, batch_size: int
) -> list[int]:
    """The growth of this process's peak in an outer step of each length; call it once."""

    def made(updates: int, images: int) -> tuple[Distillation, tuple[Tensor, Tensor]]:
        settings = {"epochs": updates // STEPS, "batch_size": images}
        distillation = prepare(MODULES[module](), (1, 28, 28), networks, **settings)
        return distillation, distillation.batch(0)

    small, *wholes = [made(STEPS, 16), *(made(updates, batch_size) for updates in lengths)]
    _go(side, *small)
    before, found = resident_memory(), list[int]()
    for whole in wholes:
        _go(side, *whole)
        found.append(peak_memory() - before)
    return found


def _go(side: str, distillation: Distillation, batch: tuple[Tensor, Tensor]) -> None:
    state = late(distillation).distiller
    if side == "reference":
        module = distillation.network.module()
        gradient(module, sampled(distillation, 0), distillation.images(state), batch)
    else:
        _with_adjoint(distillation, side).distiller.step(state, batch)


def _with_adjoint(distillation: Distillation, side: str) -> Distillation:
    """The distillation with the adjoint that a side means; ``ours`` is the one of any run."""
    if side == "ours":
        return distillation
    adjoint = StoredGraph() if side == "stored-graph" else BackGradient(int(side))
    return replace(distillation, distiller=replace(distillation.distiller, adjoint=adjoint))


if __name__ == "__main__":
    side, lengths, networks, module, batch_size = sys.argv[1:]
    numbers = [int(updates) for updates in lengths.split(",")]
    growths = _growth(side, numbers, int(networks), module, int(batch_size))
    print(json.dumps(growths if len(growths) > 1 else growths[0]))
