"""Time until distilled data reach an accuracy, against the reference with the paper's schedule.

MNIST, LeNet. Ours is the recipe as it stands; the reference makes the paper's outer steps with the
published algorithm. Both are measured on held-out training data after the same outer steps; the
clock stands still meanwhile. A seed is run on one side and then on the other; the reference is
stopped when the ratio is known to be large enough, and the ratio is then a lower bound.

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
from datadistill.runs.planning.division import divided
from datadistill.runs.recipes import Preset, read_recipe

NAME = "time_to_accuracy"
FIRST, GROWTH = 20, 1.05  # measured after outer step 20, and then after every 5 % more
EXAMPLES = 2000


@dataclass(frozen=True)
class Case:
    """What is to be reached, and how much sooner.

    Attributes:
        recipe: The experiment.
        target: The accuracy.
        at_least: The promised ratio of times.
        cap: The ratio at which the reference is stopped.
        networks: Networks that are measured.
        seconds: The longest time of ours, after which the target counts as missed.
        changes: Settings of ours that are not the recipe's.
    """

    recipe: str
    target: float
    at_least: float
    cap: float
    networks: int
    seconds: float = 3600
    changes: Mapping[str, Any] = field(default_factory=dict[str, Any])


# The recipe goes further than this target: it makes four times as many outer steps.
SHORTER = {"iterations": 6000, "batch_size": 128}
CASES = {
    "fixed": Case("mnist-fixed-10", 0.90, at_least=4, cap=4.5, networks=1, changes=SHORTER),
    "random": Case("mnist-random-100", 0.795, at_least=10, cap=11, networks=20),
}
# To fit into minutes: what both sides reach early, and the first seed alone.
QUICK = {
    "fixed": replace(CASES["fixed"], target=0.8, seconds=25),
    # So early, the first measurement is late for ours: less can be promised.
    "random": replace(CASES["random"], target=0.75, at_least=5, cap=6, networks=8, seconds=60),
}


@dataclass(frozen=True)
class Reached:
    """How far one side came.

    Attributes:
        seconds: Of its outer steps, without measuring.
        outer_steps: How many.
        accuracy: The last that was measured.
        reached: Whether it is the target.
    """

    seconds: float
    outer_steps: int
    accuracy: float | None
    reached: bool


Advance = Callable[[], tuple[int, Steps]]
"""Makes one outer step; returns how many are done, and the distilled data."""

Side = Callable[
    [Case, int, Path | None], contextlib.AbstractContextManager[tuple[Distillation, Advance]]
]
"""Of a case, a seed and the folder of the data: what is distilled, and how a step is made."""


def measure(*, quick: bool = False, data_dir: Path | None = None) -> dict[str, Any]:
    """All cases; a quick run has one seed and lower targets."""
    cases, seeds = (QUICK, [0]) if quick else (CASES, [0, 1, 2])
    runs = [pair(name, cases[name], seed, data_dir) for name in cases for seed in seeds]
    return figures(runs)


def pair(name: str, case: Case, seed: int, data_dir: Path | None) -> dict[str, Any]:
    """One seed on both sides."""
    mine = run(ours, case, seed, data_dir, case.seconds)
    print(f"  {name}, seed {seed}: ours {mine}", flush=True)
    limit = case.cap * mine.seconds if mine.reached else 0.0
    theirs = run(reference, case, seed, data_dir, limit)
    print(f"  {name}, seed {seed}: reference {theirs}", flush=True)
    return {
        "case": name,
        "seed": seed,
        **{key: getattr(case, key) for key in ("recipe", "target", "at_least")},
        "ours": asdict(mine),
        "reference": asdict(theirs),
    }


def run(side: Side, case: Case, seed: int, data_dir: Path | None, limit: float) -> Reached:
    """Makes outer steps until the target, or until a time is over.

    All that comes before the first outer step counts too: reading the data, the images that
    distillation starts from, the measurement that divides the work, starting processes.
    """
    torch.set_num_threads(THREADS)
    begin = time.perf_counter()
    with side(case, seed, data_dir) as (distillation, advance):
        seconds = time.perf_counter() - begin
        due, accuracy, done = cadence(), None, 0
        look = next(due)
        while seconds < limit and done < distillation.config.iterations:
            begin = time.perf_counter()
            done, steps = advance()
            seconds += time.perf_counter() - begin
            if done == look:
                look, accuracy = next(due), accuracy_of(distillation, steps, case.networks)
                if accuracy >= case.target:
                    return Reached(seconds, done, accuracy, True)
        return Reached(seconds, done, accuracy, False)


def cadence() -> Iterator[int]:
    """The outer steps after which both sides are measured."""
    step = FIRST
    while True:
        yield step
        step = max(step + 1, math.ceil(GROWTH * step))


def settings(case: Case, seed: int, data_dir: Path | None, preset: Preset) -> RunConfig:
    """The recipe with another seed; ours with its changes."""
    read = read_recipe(case.recipe, preset).config
    if preset == "fast":
        read = replace(read, **case.changes)
    return replace(read, seed=seed, init_seed=seed, data_dir=data_dir, device="cpu")


@contextlib.contextmanager
def ours(case: Case, seed: int, data_dir: Path | None) -> Generator[tuple[Distillation, Advance]]:
    """Outer steps as a run makes them, divided as it divides them."""
    experiment, _ = divided(load(settings(case, seed, data_dir, "fast")))
    with running(experiment.config) as made:
        yield made


@contextlib.contextmanager
def running(config: RunConfig) -> Generator[tuple[Distillation, Advance]]:
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
def reference(
    case: Case, seed: int, data_dir: Path | None
) -> Generator[tuple[Distillation, Advance]]:
    """Outer steps of the reference, with the paper's minibatch and networks."""
    config = paper_settings(settings(case, seed, data_dir, "paper"))
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
    """One row for each case: mean times over the seeds."""
    rows: list[dict[str, Any]] = []
    for name in dict.fromkeys(one["case"] for one in runs):
        mine = [one for one in runs if one["case"] == name]
        seconds = {
            side: sum(one[side]["seconds"] for one in mine) / len(mine)
            for side in ("reference", "ours")
        }
        found = all(one["ours"]["reached"] for one in mine)
        rows.append(
            {
                "recipe": mine[0]["recipe"],
                "target, %": 100 * mine[0]["target"],
                "seeds": len(mine),
                "reference, s": seconds["reference"],
                "ours, s": seconds["ours"],
                "ratio": seconds["reference"] / seconds["ours"] if found else None,
                "lower bound": not all(one["reference"]["reached"] for one in mine),
                "at least": mine[0]["at_least"],
            }
        )
    return {"runs": list(runs), "rows": rows}


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
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    given = {key: getattr(options, key) for key in ("target", "cap", "seconds")}
    case = replace(CASES[options.case], **{k: v for k, v in given.items() if v is not None})
    for seed in options.seeds:
        on = machine()
        new = pair(options.case, case, seed, options.data_dir)
        results = Results.read(options.output)
        entry = results.entries.get(NAME, {})
        old = [] if entry.get("quick") else entry.get("runs", [])
        results.add(NAME, figures(merged(old, new)), quick=False, on=on)
        print(results.table(NAME), flush=True)


if __name__ == "__main__":
    main()
