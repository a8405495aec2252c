"""What a run will cost, measured on this machine before it starts."""

import math
import sys
import time
from dataclasses import dataclass

import torch

from ...data import LabelledData
from ...engine import using
from ...engine.team import Team
from ...evaluation.evaluating import HELD_OUT_NETWORKS, learning_curve
from ...pools import at_most
from ..config import VALIDATIONS
from ..distillation import Distillation
from ..preparation import computed_by

TRIALS = 3
TRIAL_SECONDS = 3.0
TEST_EXAMPLES = 1000
TEST_FEW = 20
MARGIN = 0.95
"""Share of a time budget that is planned for; the machine may be slower than measured."""


@dataclass(frozen=True)
class Cost:
    """Seconds and bytes.

    Attributes:
        outer_step: Seconds of one outer step.
        validation: Seconds of one measurement on held-out training data.
        test: Seconds of the test at the end.
        memory: Bytes of the process at its peak, or of the GPU's.
    """

    outer_step: float
    validation: float
    test: float
    memory: int

    def total(self, iterations: int, validate_every: int) -> float:
        """Seconds of a run."""
        measurements = iterations / validate_every + 1
        return iterations * self.outer_step + measurements * self.validation + self.test

    def iterations_within(self, seconds: float) -> int:
        """How many outer steps fit into a time, beside the measurements and the test."""
        left = MARGIN * seconds - (VALIDATIONS + 1) * self.validation - self.test
        return max(0, int(left / self.outer_step))


def measure_cost(distillation: Distillation, test: LabelledData | None) -> Cost:
    """Makes a few outer steps and a small test, of which nothing is kept."""
    # As one of several processes it does its own share, without the others.
    processes = distillation.team.size
    distiller = computed_by(distillation, Team(0, processes))
    state = distillation.late()
    times: list[float] = []
    # The first outer step prepares much that later ones find ready: it does not count.
    while len(times) <= TRIALS and sum(times[1:]) < TRIAL_SECONDS:
        begin = time.perf_counter()
        distiller.step(state, distillation.batch(len(times)))
        times.append(time.perf_counter() - begin)
    train, example = _time_of_networks(distillation)
    fixed = distiller.initialization.fixed
    most = 1 if fixed else at_most(distiller.initialization, HELD_OUT_NETWORKS)
    tested = distillation.config.test_networks or most

    def testing(networks: int, data: LabelledData | None) -> float:
        share = math.ceil(networks / processes)
        return 0.0 if data is None else share * (train + example * len(data))

    return Cost(
        outer_step=min(times[1:]),
        validation=testing(distillation.validation_networks, distillation.held_out),
        test=testing(tested, test),
        memory=peak_memory(distiller.network.device),
    )


def _time_of_networks(distillation: Distillation) -> tuple[float, float]:
    """Seconds to train one network on the distilled data, and to test it on one example."""
    distiller, data = distillation.distiller, distillation.data
    distilled = distillation.distilled(distillation.images(distillation.like()), 0)
    networks = distillation.validation_networks

    updates = len(distilled.steps.schedule)

    def seconds(examples: int, after: int) -> float:
        few = data.part(torch.arange(examples), "train")
        begin = time.perf_counter()
        with using(distillation.config.engine):
            device = str(distiller.network.device)
            learning_curve(distilled, few, after=[after], networks=networks, device=device)
        return (time.perf_counter() - begin) / networks

    # Untrained networks are tested: of the time of many updates, no more than noise would remain.
    training, drawing = seconds(1, updates), seconds(1, 0)
    for many in (min(TEST_FEW, len(data)), min(TEST_EXAMPLES, len(data))):
        testing = max(0.0, seconds(many, 0) - drawing)
        if testing > TRIAL_SECONDS * many / TEST_EXAMPLES:  # large images: a few tell enough
            break
    return training, testing / many


def peak_memory(device: torch.device) -> int:
    """The most bytes that this process, or its GPU memory, has taken so far."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    if sys.platform == "win32":
        return 0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
