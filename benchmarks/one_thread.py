"""Speed of one outer step against the reference, both on one thread, in processor time.

10 steps × 3 epochs, minibatch 1024. Other load on the machine changes processor time little, and
threads of one side do not wait for each other: this is the work that either side does. Both make
whole outer steps, late in a run, and are measured alternately. Shares of the peak are as in
:mod:`benchmarks.speed`, of a matrix product on one thread.
"""

import itertools
from dataclasses import replace
from typing import Any

import torch

from benchmarks.plain_loop import processor_time
from benchmarks.reference import ReferenceRun, gradient, sampled
from benchmarks.speed import CASES, Case
from benchmarks.timing import Operations, alternately
from datadistill.runs.experiment import load
from datadistill.runs.planning.speed import matmul_peak

OUTER_STEP = 500
"""Updates are traced by then."""
AT_LEAST = {("LeNet", 1): 3.0, ("LeNet", 4): 4.5, ("LeNet", 16): 5.0}


def measure(*, quick: bool = False) -> dict[str, Any]:
    """All cases with a promise."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        peak = matmul_peak()
        chosen = [case for case in CASES if (case.name, case.networks) in AT_LEAST]
        rows = [compare(one, peak, _few(one) if quick else one.trials) for one in chosen]
    finally:
        torch.set_num_threads(threads)
    return {"matmul peak, GFLOP/s": peak / 1e9, "threads": 1, "rows": rows}


def _few(case: Case) -> int:
    """Trials of the quick setting: the shorter an outer step, the more."""
    return min(case.trials, max(3, 12 // case.networks))


def compare(case: Case, peak: float, trials: int) -> dict[str, Any]:
    """One row: the best processor times of both sides, their ratio and shares of the peak."""
    distillation = load(replace(case.settings, threads=1)).prepare()
    start = distillation.start()
    state = replace(start, distiller=replace(start.distiller, outer_step=OUTER_STEP))
    reference = ReferenceRun(distillation)
    best = alternately(
        {
            "reference": processor_time(reference.step),
            "ours": processor_time(lambda: distillation.advance(state)),
        },
        trials,
    )
    steps, batch = distillation.images(start.distiller), distillation.batch(0)
    with Operations() as counted:
        one = itertools.islice(sampled(distillation, 0), 1)
        gradient(distillation.network.module(), one, steps, batch)
    share = 100 * case.networks * counted.total / peak
    return {
        "network": case.name,
        "J": case.networks,
        "reference, s": best["reference"],
        "ours, s": best["ours"],
        "ratio": best["reference"] / best["ours"],
        "at least": AT_LEAST[case.name, case.networks],
        "share of peak, reference, %": share / best["reference"],
        "share of peak, ours, %": share / best["ours"],
    }
