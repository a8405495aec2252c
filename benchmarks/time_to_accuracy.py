"""Time until distilled data reach the paper's accuracy, against the reference by its schedule.

Ours is ``--preset best`` of the recipe; the reference makes the paper's outer steps with the
published algorithm, from noise. Both have one thread. Processor time is compared, to which other
load on the machine adds little; wall time is measured too. Both sides are measured on held-out
training data after the same outer steps, for which the clocks stand still. A seed is run on one
side and then on the other; the reference is stopped when the ratio is known to be large enough, and
the ratio is then a lower bound.

    python -m benchmarks.time_to_accuracy random --seeds 0 1 2
"""

import argparse
import contextlib
import math
import statistics
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.processes import sharing
from benchmarks.reference import ReferenceRun, paper_settings
from benchmarks.results import RESULTS, Results, machine
from benchmarks.timing import THREADS
from datadistill.core.distilled import Steps
from datadistill.core.random import stream
from datadistill.evaluation import evaluate
from datadistill.runs.config import RunConfig
from datadistill.runs.distillation import Distillation
from datadistill.runs.experiment import load
from datadistill.runs.recipes import Preset, read_recipe

NAME = "time_to_accuracy"
FIRST, GROWTH = 5, 1.05  # measured after outer step 5, and then after every 5 % more
EXAMPLES = 2000


@dataclass(frozen=True)
class Case:
    """What is to be reached, and how much sooner.

    Attributes:
        recipe: The experiment.
        target: The accuracy.
        at_least: The promised ratio of processor times.
        cap: The ratio at which the reference is stopped.
        networks: Networks that are measured.
        starts: What ours starts from; the promise is for the first.
        seconds: The longest time of ours, after which the target counts as missed.
        changes: Settings of ours that are not those of the preset best.
    """

    recipe: str
    target: float
    at_least: float
    cap: float
    networks: int
    starts: tuple[str, ...] = ("noise",)
    seconds: float = 7200
    changes: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def config(self, preset: Preset, seed: int, data_dir: Path | None) -> RunConfig:
        """The recipe with another seed, on one thread."""
        read = read_recipe(self.recipe, preset).config
        own = {"seed": seed, "init_seed": seed, "data_dir": data_dir, "device": "cpu"}
        return replace(read, **own, threads=1, processes=1)


CASES = {
    "fixed": Case("mnist-fixed-10", 0.9376, at_least=30, cap=31, networks=1),
    "random": Case(
        "mnist-random-100", 0.795, at_least=30, cap=31, networks=20, starts=("k-means", "noise")
    ),
    "cifar10": Case(
        "cifar10-fixed-100", 0.5403, at_least=10, cap=10.5, networks=1, starts=("k-means", "noise")
    ),
}
# To fit into minutes: what ours reaches early, and the first seed alone.
QUICK = {
    "fixed": replace(CASES["fixed"], target=0.8, at_least=3, cap=3.5, seconds=60),
    "random": replace(
        CASES["random"], target=0.75, at_least=6, cap=6.5, networks=8, starts=("k-means",)
    ),
}


@dataclass(frozen=True)
class Reached:
    """How far one side came.

    Attributes:
        seconds: Processor time of its outer steps, without measuring.
        wall: The same by the clock.
        outer_steps: How many.
        accuracy: The last that was measured.
        reached: Whether it is the target.
    """

    seconds: float
    wall: float
    outer_steps: int
    accuracy: float | None
    reached: bool


Advance = Callable[[], tuple[int, Steps]]
"""Makes one outer step; returns how many are done, and the distilled data."""

Made = tuple[Distillation, Advance]
"""What is distilled, and how a step is made."""


def measure(*, quick: bool = False, data_dir: Path | None = None) -> dict[str, Any]:
    """All cases; a quick run has one seed and lower targets."""
    cases, seeds = (QUICK, [0]) if quick else (CASES, [0, 1, 2])
    return figures([one_seed(n, case, s, data_dir) for n, case in cases.items() for s in seeds])


def one_seed(name: str, case: Case, seed: int, data_dir: Path | None) -> dict[str, Any]:
    """One seed on both sides: ours from every start, then the reference."""
    mine: dict[str, Reached] = {}
    for start in case.starts:
        mine[start] = run(ours(case, seed, data_dir, start), case, case.seconds)
        print(f"  {name}, seed {seed}: ours from {start} {mine[start]}", flush=True)
    promised = mine[case.starts[0]]
    limit = case.cap * promised.seconds if promised.reached else 0.0
    theirs = run(reference(case, seed, data_dir), case, limit)
    print(f"  {name}, seed {seed}: reference {theirs}", flush=True)
    return {
        "case": name,
        "seed": seed,
        **{key: getattr(case, key) for key in ("recipe", "target", "at_least")},
        "ours": {start: asdict(found) for start, found in mine.items()},
        "reference": asdict(theirs),
    }


def run(
    side: contextlib.AbstractContextManager[Made],
    case: Case,
    limit: float,
) -> Reached:
    """Makes outer steps until the target, or until a processor time is over.

    All that comes before the first outer step counts too: reading the data, and the images that
    distillation starts from.
    """
    torch.set_num_threads(1)
    try:
        watch = Watch()
        with side as (distillation, advance):
            watch.stop()
            due, accuracy, done = cadence(), None, 0
            look = next(due)
            while watch.seconds < limit and done < distillation.config.iterations:
                watch.start()
                done, steps = advance()
                watch.stop()
                if done == look:
                    look, accuracy = next(due), accuracy_of(distillation, steps, case.networks)
                    if accuracy >= case.target:
                        return Reached(watch.seconds, watch.wall, done, accuracy, True)
            return Reached(watch.seconds, watch.wall, done, accuracy, False)
    finally:
        torch.set_num_threads(THREADS)


class Watch:
    """Adds up processor and wall time while it runs; it starts at once."""

    def __init__(self) -> None:
        self.seconds = self.wall = 0.0
        self.start()

    def start(self) -> None:
        """Lets it run."""
        self._since = time.process_time(), time.perf_counter()

    def stop(self) -> None:
        """Lets it stand still."""
        self.seconds += time.process_time() - self._since[0]
        self.wall += time.perf_counter() - self._since[1]


def cadence() -> Iterator[int]:
    """The outer steps after which both sides are measured."""
    step = FIRST
    while True:
        yield step
        step = max(step + 1, math.ceil(GROWTH * step))


@contextlib.contextmanager
def ours(case: Case, seed: int, data_dir: Path | None, start: str) -> Generator[Made]:
    """Outer steps as a run of the preset best makes them."""
    with running(
        replace(case.config("best", seed, data_dir), **{"start": start, **case.changes})
    ) as made:
        yield made


@contextlib.contextmanager
def running(config: RunConfig) -> Generator[Made]:
    """Outer steps as a run makes them, without its own measurements."""
    quiet = replace(config, validate_every=config.iterations)
    torch.set_num_threads(config.threads or THREADS)
    with sharing(quiet, config.processes or 1) as (_, shared):
        state = shared.start()

        def advance() -> tuple[int, Steps]:
            nonlocal state
            state, _ = shared.advance(state)
            return state.outer_step, shared.images(state.distiller)

        yield shared, advance


@contextlib.contextmanager
def reference(case: Case, seed: int, data_dir: Path | None) -> Generator[Made]:
    """Outer steps of the reference, with the paper's minibatch and networks."""
    config = replace(paper_settings(case.config("paper", seed, data_dir)), threads=1)
    distillation = load(config).prepare()
    whole = ReferenceRun(distillation)

    def advance() -> tuple[int, Steps]:
        whole.step()
        return whole.outer_step, whole.distilled

    yield distillation, advance


def accuracy_of(distillation: Distillation, steps: Steps, networks: int) -> float:
    """The mean accuracy of networks on held-out training data."""
    return statistics.mean(networks_of(distillation, steps, networks))


def networks_of(distillation: Distillation, steps: Steps, networks: int) -> list[float]:
    """The accuracy of each of some networks on held-out training data."""
    held_out = distillation.held_out
    assert held_out is not None
    some = torch.randperm(len(held_out), generator=stream(0, "measured"))[:EXAMPLES]
    data, threads = held_out.part(some, "validation"), torch.get_num_threads()
    found = evaluate(distillation.distilled(steps, 0), data, networks=networks).values
    torch.set_num_threads(threads)
    return list(found)


def figures(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One row for each case and start of ours: mean times over the seeds."""
    rows: list[dict[str, Any]] = []
    for name, start in dict.fromkeys((one["case"], start) for one in runs for start in one["ours"]):
        mine = [one for one in runs if one["case"] == name and start in one["ours"]]
        own, theirs = [one["ours"][start] for one in mine], [one["reference"] for one in mine]
        found = all(one["reached"] for one in own)
        seconds, wall = (
            [statistics.mean(one[clock] for one in side) for side in (theirs, own)]
            for clock in ("seconds", "wall")
        )
        promised = {"at least": mine[0]["at_least"]} if start == next(iter(mine[0]["ours"])) else {}
        rows.append(
            {
                "recipe": mine[0]["recipe"],
                "ours starts from": start,
                "target, %": 100 * mine[0]["target"],
                "seeds": len(mine),
                "reference, s": seconds[0],
                "ours, s": seconds[1],
                "ratio": seconds[0] / seconds[1] if found else None,
                "ratio of wall time": wall[0] / wall[1] if found else None,
                "lower bound": not all(one["reached"] for one in theirs),
                **promised,
            }
        )
    return {"threads": 1, "runs": list(runs), "rows": rows}


def merged(old: Sequence[dict[str, Any]], new: dict[str, Any]) -> list[dict[str, Any]]:
    """Runs with a newer one, which takes the place of the same seed's; other targets go."""
    same = ("case", "seed")
    kept = [
        one
        for one in old
        if any(one[key] != new[key] for key in same)
        and (one["case"] != new["case"] or one["target"] == new["target"])
    ]
    return sorted([*kept, new], key=lambda one: (one["case"], one["seed"]))


def main() -> None:
    """Runs some seeds of one case, and keeps each in the results as soon as it is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--target", type=float, help="accuracy between 0 and 1")
    parser.add_argument("--cap", type=float, help="ratio at which the reference is stopped")
    parser.add_argument("--seconds", type=float, help="longest time of ours")
    parser.add_argument("--starts", nargs="+", help="what ours starts from")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    given = {key: getattr(options, key) for key in ("target", "cap", "seconds", "starts")}
    case = replace(CASES[options.case], **{k: v for k, v in given.items() if v is not None})
    for seed in options.seeds:
        on = machine()
        new = one_seed(options.case, case, seed, options.data_dir)
        results = Results.read(options.output)
        entry = results.entries.get(NAME, {})
        old = [] if entry.get("quick") else entry.get("runs", [])
        results.add(NAME, figures(merged(old, new)), quick=False, on=on)
        print(results.table(NAME), flush=True)


if __name__ == "__main__":
    main()
