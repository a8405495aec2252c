"""Power losses and failing calls under distil, resume, pretrain, evaluate and save.

    python -m benchmarks.power_loss [--count 500] [--only NAME …]

At least ``--count`` power losses for each command, at every point in several ways; and every n-th
call to the operating system fails, once and from then on, with a full disk, a broken one and an
exceeded quota in turn. The command is then run again: it must end in the same bytes, or refuse with
a typed error, and never lose what was finished.
"""

import argparse
import itertools
import math
import sys
import time
from collections.abc import Sequence

from benchmarks.power_loss.calls import ERRORS
from benchmarks.power_loss.campaign import Campaign
from benchmarks.power_loss.commands import COMMANDS
from benchmarks.power_loss.disk import all_fates

SHOWN = 10


def failing_cases(calls: range) -> list[tuple[int, int, bool]]:
    """Every call fails once, and with it all that follow; with each error in turn."""
    return [
        (n, ERRORS[(n + forever) % len(ERRORS)], forever)
        for n in calls
        for forever in (False, True)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs all cases and prints their counts."""
    parser = argparse.ArgumentParser("python -m benchmarks.power_loss", description=__doc__)
    parser.add_argument("--count", type=int, default=500, help="power losses for each command")
    names = [command.name for command in COMMANDS]
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    options = parser.parse_args(arguments)
    defects = 0
    for command in (one for one in COMMANDS if one.name in options.only):
        begin, losses, failures = time.monotonic(), Campaign(command), Campaign(command)
        ways = all_fates(range(max(2, math.ceil(options.count / len(losses.points)) - 6)))
        losses.keep_promises()
        losses.lose_power(itertools.product(losses.points, ways))
        failures.fail(failing_cases(failures.calls))
        for what, campaign in (("power losses", losses), ("failing calls", failures)):
            found = campaign.outcome
            print(
                f"{command.name}: {found.cases} {what}: {found.resumed} resumed to the same bytes, "
                f"{found.refused} refused, {len(found.defects)} defects",
                flush=True,
            )
            print("".join(f"  {one}\n" for one in found.defects[:SHOWN]), end="", flush=True)
            defects += len(found.defects)
        print(f"  ({len(losses.points)} points, {time.monotonic() - begin:.0f} s)", flush=True)
    return 1 if defects else 0


if __name__ == "__main__":
    sys.exit(main())
