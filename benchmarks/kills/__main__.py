"""Kills live processes at random moments, lets a new start finish, and compares all bytes.

    python -m benchmarks.kills --count 300 [--seed 0] [--only NAME …] [--together 1]

Every command that computes or writes is killed by SIGKILL, with one and with two processes.
Afterwards no process of it may be left, and the next start must end with the bytes of an
undisturbed one and without temporary files of the killed one. Commands are forks of a process that
has imported torch, so that kills fall into their work and not into imports.
"""

import argparse
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .campaign import Campaign
from .works import WORKS


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a campaign and prints what was seen."""
    parser = argparse.ArgumentParser("python -m benchmarks.kills", description=__doc__)
    parser.add_argument("--count", type=int, default=300, help="kills in all")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--only", nargs="+", choices=[*WORKS], default=[*WORKS], metavar="NAME")
    parser.add_argument("--together", type=int, default=1, help="commands side by side")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as place:
        campaign = Campaign(Path(place), random.Random(options.seed))
        campaign.run(options.count, options.only, options.together)
    for name, kills in campaign.kills.items():
        print(f"{name:32} {kills:4} kills")
    print(f"{campaign.kills.total():37} kills, {len(campaign.failures)} failures")
    return bool(campaign.failures)


if __name__ == "__main__":
    sys.exit(main())
