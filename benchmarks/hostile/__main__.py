"""Campaigns of hostile files; docs/security.md has their counts.

    python -m benchmarks.hostile files --count 10000 --seed 0
    python -m benchmarks.hostile artefacts --count 10000 --seed 0
    python -m benchmarks.hostile fuzz --minutes 60 [--kind NAME …] [--corpus DIR]

``--first N`` leaves out the cases before N, so that a campaign can be run in portions.
The exit code is 1 if a promise was broken. Files that broke one are kept in cases/, which the tests
try from then on.
"""

import argparse
import importlib
import sys
import time
from pathlib import Path

from .counts import Counts


def _progress(done: int, count: int) -> None:
    if done % 500 == 0 or done == count:
        print(f"{done:,} of {count:,}", file=sys.stderr, flush=True)


def _report(counts: Counts, seconds: float) -> int:
    for detail in counts.details:
        print(detail)
    print(f"{counts} ({seconds:.0f} s)")
    return 1 if counts.failed else 0


def main() -> int:
    """Runs one campaign; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hostile", description=__doc__)
    actions = parser.add_subparsers(dest="what", required=True)
    for name in ("files", "artefacts"):
        action = actions.add_parser(name)
        action.add_argument("--count", type=int, default=10_000)
        action.add_argument("--first", type=int, default=0, help="number of the first case")
        action.add_argument("--seed", type=int, default=0)
        action.add_argument("--workers", type=int, default=2, help="processes that try cases")
    fuzz = actions.add_parser("fuzz")
    fuzz.add_argument("--minutes", type=float, default=60.0)
    fuzz.add_argument("--kind", nargs="*", default=[])
    fuzz.add_argument("--corpus", type=Path, help="folder that keeps inputs for the next run")
    given = parser.parse_args()
    begin = time.monotonic()
    campaign = importlib.import_module(f"benchmarks.hostile.{given.what}")
    if given.what == "fuzz":
        counts = campaign.run(given.minutes, given.kind, given.corpus)
    else:
        numbers = range(given.first, given.first + given.count)
        counts = campaign.run(numbers, given.seed, given.workers, _progress)
    return _report(counts, time.monotonic() - begin)


if __name__ == "__main__":
    sys.exit(main())
