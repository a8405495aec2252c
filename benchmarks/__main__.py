"""All benchmarks as a whole; with --quick, in a quarter of an hour and more on two cores.

    python -m benchmarks [--quick] [--only NAME …] [--output FILE] [--data-dir DIR]
    python -m benchmarks page

The first writes one JSON and fails if a promise is missed; with --only, other figures in the file
stay as they are. The second puts their tables into docs/performance.md.
"""

import argparse
import importlib
import importlib.util
import inspect
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.results import PAGES, RESULTS, Results, machine, with_tables
from benchmarks.timing import THREADS
from datadistill.data import data_folder

NAMES = (
    "speed",
    "one_thread",
    "plain_loop",
    "wide_networks",
    "directions",
    "memory",
    "evaluation",
    "pretraining",
    "adaptation",
    "imagenet",
    "processes",
    "one_network",
    "communication",
    "checkpoints",
    "data",
    "start_up",
    "time_to_accuracy",
)
WHEN_ASKED = ("compiled",)
"""Those that --only alone runs: no promise hangs on them, and they take long."""


def available(names: Sequence[str] = NAMES) -> list[str]:
    """The benchmarks that are there."""
    return [name for name in names if importlib.util.find_spec(f"benchmarks.{name}")]


def run(name: str, results: Results, *, quick: bool, data_dir: Path) -> None:
    """Runs one benchmark, keeps what it finds and prints its table."""
    measure = importlib.import_module(f"benchmarks.{name}").measure
    takes = inspect.signature(measure).parameters
    options: dict[str, Any] = {"quick": quick, "data_dir": data_dir}
    print(f"\n{name} …", flush=True)
    torch.set_num_threads(THREADS)
    on, begin = machine(), time.perf_counter()
    figures = measure(**{key: value for key, value in options.items() if key in takes})
    seconds = round(time.perf_counter() - begin)
    results.add(name, {**figures, "seconds": seconds}, quick=quick, on=on)
    print(f"{results.table(name)}({seconds} s)", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs benchmarks, or makes the page."""
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument("what", nargs="?", choices=("run", "page"), default="run")
    parser.add_argument("--quick", action="store_true", help="fewer trials")
    parser.add_argument(
        "--only", nargs="+", choices=available(NAMES + WHEN_ASKED), default=available()
    )
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--data-dir", type=Path)
    options = parser.parse_args(arguments)
    results = Results.read(options.output)
    if options.what == "page":
        for page in PAGES:
            page.write_text(with_tables(page.read_text(), results))
        return 0
    for name in options.only:
        run(name, results, quick=options.quick, data_dir=data_folder(options.data_dir))
    missed = [f"{name}: {row}" for name in options.only for row in results.missed(name)]
    print("\n".join(["", *(f"missed: {row}" for row in missed)]))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
