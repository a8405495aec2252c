"""Outer steps per second of two processes, beside one: a ratio measured in one run.

    python benchmarks/processes.py

Both sides make the same outer steps, one after the other, each process with one thread; the best
of several rounds counts. The gradient of both is compared too, in float32 and in float64.
"""

import contextlib
import json
import math
import sys
import time
from collections.abc import Generator
from dataclasses import replace
from typing import NamedTuple

from datadistill.core.names import DtypeName
from datadistill.engine.team import ALONE
from datadistill.runs.config import RunConfig
from datadistill.runs.distillation import Distillation
from datadistill.runs.experiment import load
from datadistill.runs.follow import worker
from datadistill.runs.preparation import computed_by
from datadistill.runs.store.checkpoint import Checkpoint, to_bytes
from datadistill.runs.store.state import RunState
from datadistill.runs.team.processes import together

ROUNDS = 8
OUTER_STEP = 500
"""One at which updates are traced."""
TARGET = 1.7
EXACT: dict[DtypeName, float] = {"float32": 1e-5, "float64": 1e-12}
SETTINGS = RunConfig(
    model="lenet",
    steps=10,
    epochs=3,
    networks=8,
    batch_size=1024,
    threads=1,
    iterations=10**6,
    validate_every=10**6,
)


class Times(NamedTuple):
    """Seconds of an outer step, and of processor time of process 0 in it."""

    seconds: float = math.inf
    processor: float = math.inf

    def best(self, other: "Times") -> "Times":
        """The lesser of each."""
        return Times(min(self.seconds, other.seconds), min(self.processor, other.processor))


def measure(rounds: int = ROUNDS) -> dict[str, object]:
    """Seconds of an outer step of one and of two processes, and how far their gradients differ.

    Processor time tells what the ratio would be if nothing else ran on the machine: it does not
    grow while another program has the processor.
    """
    one, two = Times(), Times()
    with sharing(replace(SETTINGS, dtype="float32"), 2) as (alone, shared):
        state, error = _gradients_differ(alone, shared)
        for _ in range(rounds):
            # The other process has begun with the next outer step already: let it end its share,
            # and do not count that outer step.
            time.sleep(min(one.seconds, 5.0))
            one = one.best(timed(alone, state)[1])
            state, _ = shared.advance(state)
            state, times = timed(shared, state)
            two = two.best(times)
    with sharing(replace(SETTINGS, dtype="float64"), 2) as (alone, shared):
        _, exact = _gradients_differ(alone, shared)
    return {
        "networks": SETTINGS.networks,
        "seconds_one_process": one.seconds,
        "seconds_two_processes": two.seconds,
        "ratio": one.seconds / two.seconds,
        "target": TARGET,
        "ratio_of_processor_time": one.processor / two.processor,
        "gradient_error_float32": error,
        "gradient_error_float64": exact,
        "rounds": rounds,
    }


@contextlib.contextmanager
def sharing(settings: RunConfig, processes: int) -> Generator[tuple[Distillation, Distillation]]:
    """The same distillation by one process alone, and by several."""
    with contextlib.suppress(_DoneError), together(processes, worker) as team:
        shared = load(settings).prepare(team)
        alone = replace(shared, distiller=computed_by(shared, ALONE))
        prints = shared.fingerprint()
        team.begin(lambda: to_bytes(Checkpoint(late(shared), shared.config, prints)))
        yield alone, shared
        raise _DoneError  # the other process would go on for ever


def late(distillation: Distillation) -> RunState:
    """The start of a run as if it had gone on for long: its updates are traced."""
    state = distillation.start()
    return replace(state, distiller=replace(state.distiller, outer_step=OUTER_STEP))


class _DoneError(Exception):
    pass


def _gradients_differ(alone: Distillation, shared: Distillation) -> tuple[RunState, float]:
    """The state after one outer step, and the greatest relative error of its gradient."""
    one, two = alone.advance(late(alone))[0], shared.advance(late(shared))[0]
    # After one outer step the first moment of Adam is half the gradient, exactly.
    expected, found = one.distiller.adam.first, two.distiller.adam.first
    errors = [float((found[n] - g).norm() / g.norm()) for n, g in expected.items()]
    return two, max(errors)


def timed(distillation: Distillation, state: RunState) -> tuple[RunState, Times]:
    """The state after one more outer step, and how long it took."""
    begin, processor = time.perf_counter(), time.process_time()
    state, _ = distillation.advance(state)
    return state, Times(time.perf_counter() - begin, time.process_time() - processor)


def main() -> None:
    """Prints the figures; fails if they are not what they should be."""
    found = measure()
    print(json.dumps(found, indent=2))
    exact = all(float(str(found[f"gradient_error_{d}"])) < limit for d, limit in EXACT.items())
    sys.exit(float(str(found["ratio"])) < TARGET or not exact)


if __name__ == "__main__":
    main()
