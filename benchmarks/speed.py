"""Speed of one outer step against the reference.

10 steps × 3 epochs, minibatch 1024; the library as a user's run calls it, the reference with
PyTorch's own number of threads. Each side draws its networks. Shares of the machine's peak are of
the operations that the algorithm needs, as counted in the reference, in the time of each side.
"""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn

import datadistill as dd
from benchmarks.reference import gradient, sampled
from benchmarks.timing import THREADS, Operations, alternately, matmul_peak
from datadistill.core.random import stream
from datadistill.runs.config import RunConfig
from datadistill.runs.distillation import Distillation


class Case(NamedTuple):
    """A network, how many of it, what is promised and how often each side is measured."""

    name: str
    module: Callable[[], nn.Module]
    shape: tuple[int, int, int]
    networks: int
    at_least: float
    trials: int


CASES = (
    Case("LeNet", dd.models.LeNet, (1, 28, 28), 1, 1.5, 7),
    Case("LeNet", dd.models.LeNet, (1, 28, 28), 4, 3.0, 5),
    Case("LeNet", dd.models.LeNet, (1, 28, 28), 16, 3.0, 3),
    Case("AlexCifarNet", dd.models.AlexCifarNet, (3, 32, 32), 1, 1.5, 3),
    Case("AlexCifarNet", dd.models.AlexCifarNet, (3, 32, 32), 4, 1.5, 2),
)


def measure(*, quick: bool = False) -> dict[str, Any]:
    """All cases."""
    torch.set_num_threads(THREADS)
    peak = matmul_peak()
    rows = [compare(case, peak, min(case.trials, 2) if quick else case.trials) for case in CASES]
    return {"matmul peak, GFLOP/s": peak / 1e9, "threads": THREADS, "rows": rows}


def compare(case: Case, peak: float, trials: int) -> dict[str, Any]:
    """One row: the best times of both sides, their ratio and shares of the peak."""
    distillation = prepare(case.module(), case.shape, case.networks)
    threads = torch.get_num_threads()
    module = distillation.distiller.network.module()
    state, batch = distillation.start().distiller, distillation.batch(0)

    def ours() -> None:
        torch.set_num_threads(threads)
        distillation.distiller.gradient(state, batch)

    def reference() -> None:
        torch.set_num_threads(THREADS)
        gradient(module, sampled(distillation, 0), state.distilled, batch)

    best = alternately({"reference": reference, "ours": ours}, trials)
    with Operations() as counted:
        gradient(module, itertools.islice(sampled(distillation, 0), 1), state.distilled, batch)
    operations = case.networks * counted.total
    return {
        "network": case.name,
        "J": case.networks,
        "reference, s": best["reference"],
        "ours, s": best["ours"],
        "ratio": best["reference"] / best["ours"],
        "at least": case.at_least,
        "GFLOP": operations / 1e9,
        "share of peak, reference, %": 100 * operations / best["reference"] / peak,
        "share of peak, ours, %": 100 * operations / best["ours"] / peak,
    }


def prepare(
    module: nn.Module, shape: tuple[int, ...], networks: int, **settings: Any
) -> Distillation:
    """A distillation of random pixels, 10 steps × 3 epochs unless told otherwise."""
    torch.set_num_threads(THREADS)
    examples = settings.get("batch_size", 1024)
    data = dd.LabelledData(
        torch.randint(0, 256, (examples, *shape), dtype=torch.uint8, generator=stream(0, "x")),
        torch.arange(examples) % 10,
        dd.data.Normalization((0.5,) * shape[0], (0.25,) * shape[0]),
    )
    chosen: dict[str, Any] = {"steps": 10, "epochs": 3, "batch_size": 1024, **settings}
    config = RunConfig(networks=networks, validation=0, device="cpu", **chosen)
    return Distillation.prepare(config, data, module)
