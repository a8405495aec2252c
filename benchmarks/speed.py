"""Speed of one outer step against the reference.

10 steps × 3 epochs, minibatch 1024; each side in its best division over the machine's cores: the
library with the threads and processes that a run finds fastest, the reference with PyTorch's own
number of threads, or with two processes that share the networks, whichever is faster. Both make
whole outer steps: they take the minibatch, draw the networks and step Adam. Shares of the machine's
peak are of the operations that the algorithm needs, as counted in the reference, in the time of
each side.
"""

import contextlib
import itertools
import time
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import torch
from torch import nn

import datadistill as dd
from benchmarks.processes import late, sharing
from benchmarks.reference import ReferenceRun, gradient, sampled
from benchmarks.reference_team import reference_team
from benchmarks.timing import THREADS, Operations, alternately, matmul_peak
from datadistill.core.random import stream
from datadistill.runs import preparation
from datadistill.runs.config import RunConfig
from datadistill.runs.distillation import Distillation
from datadistill.runs.experiment import load
from datadistill.runs.planning.division import Division, divisions
from datadistill.runs.planning.division import best as fastest


class Case(NamedTuple):
    """A network, how many of it, what is promised, how often it is measured, and the goal."""

    name: str
    channels: Literal[1, 3]
    size: int
    networks: int
    at_least: float
    trials: int
    goal: float | None = None

    @property
    def settings(self) -> RunConfig:
        """The distillation: of digits, whose pixels do not matter for the time."""
        return RunConfig(
            model=self.name.lower(),
            size=self.size,
            channels=self.channels,
            networks=self.networks,
            steps=10,
            epochs=3,
            batch_size=1024,
            validation=0,
            device="cpu",
            iterations=10**6,
        )


CASES = (
    Case("LeNet", 1, 28, 1, 1.5, 7, 2.5),
    Case("LeNet", 1, 28, 4, 3.0, 5, 4.0),
    Case("LeNet", 1, 28, 16, 3.0, 3, 4.5),
    Case("AlexCifarNet", 3, 32, 1, 1.5, 3),
    Case("AlexCifarNet", 3, 32, 4, 1.5, 2),
)


def measure(*, quick: bool = False) -> dict[str, Any]:
    """All cases."""
    torch.set_num_threads(THREADS)
    peak = matmul_peak()
    rows = [compare(case, peak, min(case.trials, 2) if quick else case.trials) for case in CASES]
    return {"matmul peak, GFLOP/s": peak / 1e9, "threads": THREADS, "rows": rows}


def compare(case: Case, peak: float, trials: int) -> dict[str, Any]:
    """One row: the best times of both sides, their ratio and shares of the peak."""
    torch.set_num_threads(THREADS)
    distillation = load(case.settings).prepare()
    division = fastest(divisions(distillation), case.settings.iterations)
    module = distillation.network.module()
    steps, batch = distillation.images(distillation.start().distiller), distillation.batch(0)

    with library(case, division) as ours, references(case, distillation) as theirs:
        best = alternately({**theirs, "ours": ours}, trials)
    how = min(theirs, key=lambda name: best[name])
    with Operations() as counted:
        gradient(module, itertools.islice(sampled(distillation, 0), 1), steps, batch)
    operations = case.networks * counted.total
    return {
        "network": case.name,
        "J": case.networks,
        "reference, processes × threads": how,
        "ours, processes × threads": _division(division.processes, division.threads),
        "reference, s": best[how],
        "ours, s": best["ours"],
        "ratio": best[how] / best["ours"],
        "at least": case.at_least,
        **({"goal": case.goal} if case.goal else {}),
        "GFLOP": operations / 1e9,
        "share of peak, reference, %": 100 * operations / best[how] / peak,
        "share of peak, ours, %": 100 * operations / best["ours"] / peak,
    }


@contextlib.contextmanager
def references(
    case: Case, distillation: Distillation
) -> Generator[dict[str, Callable[[], object]]]:
    """Outer steps of the reference by its divisions: threads, or processes with one each."""

    def on(threads: int, whole: ReferenceRun) -> Callable[[], object]:
        def step() -> None:
            torch.set_num_threads(threads)
            whole.step()

        return step

    sides = {_division(1, THREADS): on(THREADS, ReferenceRun(distillation))}
    if case.networks == 1 or THREADS == 1:
        yield sides
        return
    with reference_team(case.settings, distillation) as team:
        yield {**sides, _division(2, 1): on(1, team)}


def _division(processes: int, threads: int) -> str:
    return f"{processes} × {threads}"


@contextlib.contextmanager
def library(case: Case, division: Division) -> Generator[Callable[[], float]]:
    """Outer steps of the library in the way that was chosen; each returns its seconds."""
    chosen = replace(case.settings, threads=division.threads)
    with sharing(chosen, division.processes) as (_, shared):
        state = late(shared)

        def ours() -> float:
            nonlocal state
            torch.set_num_threads(division.threads)
            if division.processes > 1:  # the others have begun with it already
                state, _ = shared.advance(state)
            begin = time.perf_counter()
            state, _ = shared.advance(state)
            return time.perf_counter() - begin

        yield ours


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
    return preparation.prepare(config, data, module)
