"""Two processes beside one where there is one network: they divide the minibatch of real data."""

import time
from dataclasses import replace
from typing import Any

from benchmarks.processes import SETTINGS, Times, late, sharing, timed

TARGET = 1.6
ONE = replace(SETTINGS, networks=None, initialization="fixed", dtype="float32")
CASES = {
    "AlexCifarNet, 10 images × 3 epochs": (
        replace(ONE, model="alexcifarnet", size=32, channels=3, steps=1),
        TARGET,
    ),
    "LeNet, 10 images × 3 epochs": (replace(ONE, steps=1), None),
    "LeNet, 10 × 10 images × 3 epochs": (ONE, None),
}
"""Settings, and what is promised where the minibatch takes most of an outer step."""


def measure(*, quick: bool) -> dict[str, Any]:
    """Processor time of an outer step: of one process alone, and of one of two."""
    rows: list[dict[str, Any]] = []
    for what, (settings, target) in CASES.items():
        one, two = Times(), Times()
        with sharing(settings, 2) as (alone, shared):
            state = late(shared)
            for _ in range(3 if quick else 6):
                one = one.best(timed(alone, state)[1])
                time.sleep(min(one.seconds, 5.0))  # the other process ends its share
                state, _ = shared.advance(state)
                state, times = timed(shared, state)
                two = two.best(times)
        rows.append(
            {
                "what": f"{what}, minibatch {settings.batch_size}",
                "one process, s": one.processor,
                "each of two, s": two.processor,
                "ratio": one.processor / two.processor,
                "at least": target,
            }
        )
    return {"rows": rows}
