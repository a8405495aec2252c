"""The outer schedules of the recipes, with one setting changed at a time.

MNIST, LeNet. Each run makes the same number of outer steps, fewer than its recipe has; what it
reaches is measured on held-out training data, never on the test data. Every run is kept as soon as
it is there, and a second call goes on.

    python -m benchmarks.ablation [fixed] [random]
"""

import argparse
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.results import RESULTS, Results, machine
from benchmarks.time_to_accuracy import accuracy_of, running
from datadistill.runs.recipes import read_recipe

NAME = "ablation"
PAPER_STEP: dict[str, Any] = {  # its rates and Adam; the number of outer steps stays
    "outer_lr": 0.01,
    "rates_lr": None,
    "betas": (0.5, 0.999),
    "clip_norm": None,
    "averaging": 0.0,
    "outer_schedule": "periods",
    "batch_size": 1024,
    "learning_rate": 0.02,
    "start": "noise",
}


@dataclass(frozen=True)
class Ablation:
    """A recipe, how long it runs, and what is changed in it.

    Attributes:
        recipe: Its name.
        outer_steps: How many are made.
        seeds: Of the distilled data and of the fixed network.
        networks: Networks that are measured.
        changes: By what the table calls them.
    """

    recipe: str
    outer_steps: int
    seeds: tuple[int, ...]
    networks: int
    changes: Mapping[str, dict[str, Any]]


ABLATIONS = {
    "fixed": Ablation(
        "mnist-fixed-10",
        1500,
        (0, 1, 2),
        1,
        {
            "the recipe": {},
            "no averaging": {"averaging": 0.0},
            "β = (0.9, 0.99)": {"betas": (0.9, 0.99)},
            "β = (0.5, 0.999)": {"betas": (0.5, 0.999)},
            "no clipping": {"clip_norm": None},
            "outer learning rate 0.02": {"outer_lr": 0.02},
            "learning rates at the images' pace": {"rates_lr": None},
            "learning rates from 0.02": {"learning_rate": 0.02},
            "no decay": {"outer_schedule": "periods", "decay": 1.0},
            "minibatch 1024": {"batch_size": 1024},
            "start from class means": {"start": "average"},
            "the paper's schedule": PAPER_STEP,
        },
    ),
    "random": Ablation(
        "mnist-random-100",
        150,
        (0,),
        20,
        {
            "the recipe": {},
            "start from noise": {"start": "noise"},
            "4 networks": {"networks": 4},
            "minibatch 1024": {"batch_size": 1024},
            "β = (0.5, 0.999)": {"betas": (0.5, 0.999)},
            "no clipping": {"clip_norm": None},
            "averaging 0.95": {"averaging": 0.95},
            "learning rates at the images' pace": {"rates_lr": None},
            "learning rates from 0.02": {"learning_rate": 0.02},
            "the paper's schedule": {**PAPER_STEP, "networks": 4},
        },
    ),
}


def reached(ablation: Ablation, changes: dict[str, Any], seed: int, data_dir: Path | None) -> float:
    """The accuracy of one run."""
    given = {"iterations": ablation.outer_steps, "seed": seed, "init_seed": seed}
    own = {"data_dir": data_dir, "device": "cpu", "threads": 1}
    config = replace(read_recipe(ablation.recipe).config, **given, **own, **changes)
    with running(config) as (distillation, advance):
        steps = [advance() for _ in range(ablation.outer_steps)][-1][1]
        return accuracy_of(distillation, steps, ablation.networks)


def figures(runs: Mapping[str, list[float]]) -> dict[str, Any]:
    """One row for each change: mean and deviation over seeds, in percent."""
    rows: list[dict[str, Any]] = []
    for key, found in runs.items():
        which, what = key.split(": ", 1)
        deviation = f" ± {100 * statistics.stdev(found):.1f}" if len(found) > 1 else ""
        rows.append(
            {
                "recipe": ABLATIONS[which].recipe,
                "outer steps": ABLATIONS[which].outer_steps,
                "changed": what,
                "held-out training data, %": f"{100 * statistics.mean(found):.1f}{deviation}",
                "seeds": len(found),
            }
        )
    return {"runs": dict(runs), "rows": rows}


def main(arguments: Sequence[str] | None = None) -> None:
    """Makes the runs that are not there yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("which", nargs="*", choices=[*ABLATIONS, []], default=[])
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    on = machine()
    for which in options.which or ABLATIONS:
        ablation = ABLATIONS[which]
        for what, changes in ablation.changes.items():
            for number, seed in enumerate(ablation.seeds):
                results = Results.read(options.output)
                runs: dict[str, list[float]] = dict(results.entries.get(NAME, {}).get("runs", {}))
                done = runs.setdefault(f"{which}: {what}", [])
                if len(done) > number:
                    continue
                done.append(reached(ablation, changes, seed, options.data_dir))
                results.add(NAME, figures(runs), quick=False, on=on)
                print(f"{which}: {what}, seed {seed}: {100 * done[-1]:.1f} %", flush=True)


if __name__ == "__main__":
    main()
