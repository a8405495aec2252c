"""How an outer step is divided among threads and processes: chosen by a short measurement."""

import math
import time
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ...core.distiller import Distiller, DistillerState
from ...durations import time_text
from ...engine import Team
from ...engine.micro_batches import mixes_examples
from ..config import RunConfig
from ..distillation import Distillation
from ..experiment import Experiment
from ..preparation import computed_by
from ..team.environment import world_size

WORTH_IT = 0.85
"""Processes are used if they take at most this share of the time that threads take."""
START_SECONDS = 20.0
"""Seconds that processes must save over a run, to make up for starting them."""
LONG_SECONDS = 10.0
"""If an outer step takes longer, no other ways are measured."""
COMPILED_FASTER = 1.25
"""How many times faster compiled updates must be, to be used."""
ROUNDING = 1e-2
"""Tolerance of the gradient of compiled updates, relative to its norm."""
COMPILED_RUN_SECONDS = 1200.0
"""A shorter run is not compiled, since to measure that takes a minute."""


@dataclass(frozen=True)
class Division:
    """A way to divide the work, and what an outer step takes in that way.

    Attributes:
        processes: How many processes share the networks.
        threads: Processor threads of each.
        seconds: Of an outer step; for several processes, of one's share.
        compiled: Whether updates are compiled.
    """

    processes: int
    threads: int
    seconds: float
    compiled: bool = False

    def __str__(self) -> str:
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        who = f"{self.processes} processes × {threads}" if self.processes > 1 else threads
        who += ", compiled" if self.compiled else ""
        return f"{who}: {time_text(self.seconds)} per outer step"


def divisions(distillation: Distillation) -> list[Division]:
    """The ways that there are on this machine, measured; first the one that needs no measurement.

    All threads in one process; one thread, which other programs disturb less; and one process for
    each thread, since Python threads block each other (GIL) and processes do not.
    """
    threads, networks = torch.get_num_threads(), distillation.distiller.networks
    if distillation.distiller.network.device.type != "cpu" or threads == 1:
        return [Division(1, threads, 0.0)]
    found = [Division(1, threads, _seconds(distillation, 1, threads))]
    if found[0].seconds < LONG_SECONDS:
        found.append(Division(1, 1, _seconds(distillation, 1, 1)))
    if found[0].seconds < LONG_SECONDS and _divisible(distillation.distiller):
        processes = min(threads, networks) if networks > 1 else threads
        found.append(Division(processes, 1, _seconds(distillation, processes, 1)))
    torch.set_num_threads(threads)
    return found


def _divisible(distiller: Distiller) -> bool:
    """Whether processes can divide the networks, or the minibatch of a single one."""
    one = distiller.networks == 1
    return distiller.engine.divisible and not (
        one and (mixes_examples(distiller.network) or not distiller.objective.is_mean)
    )


def best(found: list[Division], iterations: int) -> Division:
    """The way that takes least time over a run of so many outer steps."""
    alone = min((d for d in found if d.processes == 1), key=lambda d: d.seconds)
    for several in (d for d in found if d.processes > 1):
        saved = (alone.seconds - several.seconds) * iterations
        if several.seconds < WORTH_IT * alone.seconds and saved > START_SECONDS:
            return several
    return alone


def is_divided(config: RunConfig) -> bool:
    """Whether processes or threads are given, by the user or by torchrun: nothing is measured."""
    return bool(config.processes or config.threads or world_size() > 1)


def flags_of(config: RunConfig) -> str:
    """The flags that repeat a choice without measuring it again."""
    compiled = " --compiled" if config.compiled else ""
    return f"--threads {config.threads} --processes {config.processes}{compiled}"


def divided(experiment: Experiment) -> tuple[Experiment, list[Division]]:
    """The experiment with the processes, threads and compilation that are fastest for it here.

    Args:
        experiment: The experiment, loaded; the measurement uses its data and network.

    Returns:
        The experiment with these settings, and all that was measured.
    """
    config, distillation = experiment.config, experiment.prepare()
    found = divisions(distillation)
    chosen = best(found, distillation.config.iterations)
    if config.compiled is None and may_be_compiled(distillation, chosen):
        seconds = _seconds(distillation, chosen.processes, chosen.threads, compiled=True)
        compiled = replace(chosen, seconds=seconds, compiled=True)
        if seconds < math.inf:
            found.append(compiled)
        chosen = compiled if COMPILED_FASTER * seconds <= chosen.seconds else chosen
        config = replace(config, compiled=chosen.compiled)
    config = replace(config, processes=chosen.processes, threads=chosen.threads)
    return replace(experiment, config=config), found


def may_be_compiled(distillation: Distillation, chosen: Division) -> bool:
    """Whether a run is so long that it is worth trying to compile its updates."""
    whole = distillation.config.iterations * chosen.seconds
    return distillation.distiller.engine.compilable and whole >= COMPILED_RUN_SECONDS


def _seconds(
    distillation: Distillation, processes: int, threads: int, *, compiled: bool = False
) -> float:
    """The time of an outer step by process 0, without the others; ∞ if compiling gains nothing."""
    torch.set_num_threads(threads)
    distiller = computed_by(distillation, Team(0, processes), compiled=compiled)
    state, times = distillation.late(), list[float]()
    for trial in range(3):  # the first prepares much that later ones find ready
        batch = distillation.batch(trial)
        begin = time.perf_counter()
        distiller.gradient(state, batch)
        times.append(time.perf_counter() - begin)
        if times[-1] > LONG_SECONDS and (trial or not compiled):
            break
    plain = computed_by(distillation, Team(0, processes), compiled=False)
    if compiled and not compiled_rightly(distiller, plain, state, distillation.batch(0)):
        return math.inf
    return min(times[1:] or times)


def compiled_rightly(
    compiled: Distiller, plain: Distiller, state: DistillerState, batch: tuple[Tensor, Tensor]
) -> bool:
    """Whether updates could be compiled, and give the gradient that they give without."""
    if not compiled.engine.compiled:
        return False
    found, expected = (
        torch.cat([one.flatten() for one in distiller.gradient(state, batch)[1].values()])
        for distiller in (compiled, plain)
    )
    return float((found - expected).norm()) <= ROUNDING * float(expected.norm())
