"""What checkpoints cost: share of the time of the recipe ``mnist-random-100``.

Outer steps, checkpoints and lines of the log are measured in turns in one run. A checkpoint is
written, synced and read back as in any run; one a minute is the default.
"""

import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from datadistill.runs.experiment import load
from datadistill.runs.recipes import read_recipe
from datadistill.runs.store.checkpoint import Checkpoint, newest, write_checkpoint
from datadistill.runs.store.folder import RunFolder
from datadistill.runs.store.metrics import logging_to

ROUNDS = 5
LIMIT = 0.01


def measure(*, data_dir: Path | None = None) -> dict[str, Any]:
    """The share of a checkpoint every minute, and of a line of the log every outer step."""
    config = replace(read_recipe("mnist-random-100").config, data_dir=data_dir)
    distillation = load(replace(config, validate_every=1)).prepare()
    state, _ = distillation.advance(distillation.start())  # measured once: best and last are there
    quiet = distillation.with_config(replace(distillation.config, validate_every=10**9))
    prints = distillation.fingerprint()
    steps: list[float] = []
    checkpoints: list[float] = []
    lines: list[float] = []
    with tempfile.TemporaryDirectory() as place:
        folder = RunFolder(Path(place))
        folder.make()
        with logging_to(folder.metrics, after=0) as log:
            for _ in range(ROUNDS):
                begin = time.perf_counter()
                state, row = quiet.advance(state)
                steps.append(time.perf_counter() - begin)
                begin = time.perf_counter()
                log.append(row)
                lines.append(time.perf_counter() - begin)
                begin = time.perf_counter()
                log.sync()
                checkpoint = Checkpoint(state, distillation.config, prints)
                write_checkpoint(folder.checkpoints, checkpoint)
                checkpoints.append(time.perf_counter() - begin)
        size = sum(path.stat().st_size for path in folder.checkpoints.iterdir()) / 2
        assert newest(folder.checkpoints)[0].state.outer_step == state.outer_step
    step, saving, line = min(steps), max(checkpoints), max(lines)
    return {
        "MiB": size / 2**20,
        "rows": [
            {
                "what": f"checkpoint (slowest of {ROUNDS}) against a minute",
                "ms": 1e3 * saving,
                "against, ms": 60_000,
                "ratio": saving / 60,
                "at most": LIMIT,
            },
            {
                "what": f"line of the log (slowest of {ROUNDS}) against an outer step",
                "ms": 1e3 * line,
                "against, ms": 1e3 * step,
                "ratio": line / step,
                "at most": LIMIT,
            },
        ],
    }
