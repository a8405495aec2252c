"""What checkpoints cost: share of the time of the recipe ``mnist-random-100``.

    python benchmarks/checkpoints.py DATA_DIR

Outer steps, checkpoints and lines of the log are measured in turns in one run. A checkpoint is
written, synced and read back as in any run; one a minute is the default.
"""

import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from datadistill.runs.checkpoint import Checkpoint, newest, write_checkpoint
from datadistill.runs.fingerprint import fingerprint
from datadistill.runs.folder import RunFolder
from datadistill.runs.metrics import logging_to
from datadistill.runs.named import Experiment
from datadistill.runs.recipes import read_recipe

ROUNDS = 5
LIMIT = 0.01


def main() -> None:
    """Prints the shares; fails if the checkpoints' is above its limit."""
    config = replace(read_recipe("mnist-random-100").config, data_dir=Path(sys.argv[1]))
    distillation = Experiment.named_by(replace(config, validate_every=1)).distillation
    state, _ = distillation.advance(distillation.start())  # measured once: best and last are there
    quiet = distillation.with_config(replace(distillation.config, validate_every=10**9))
    prints = fingerprint(distillation.distiller, distillation.data, distillation.held_out)
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
    print(f"outer step {1000 * step:.0f} ms (fastest of {ROUNDS})")
    print(f"checkpoint {1000 * saving:.1f} ms (slowest of {ROUNDS}), {size / 2**20:.2f} MiB")
    print(f"line of metrics.jsonl {1e6 * line:.0f} µs (slowest of {ROUNDS})")
    print(f"share of a checkpoint every minute: {100 * saving / 60:.4f} % (limit 1 %)")
    print(f"share of a line every outer step:   {100 * line / step:.4f} %")
    sys.exit(saving / 60 >= LIMIT)


if __name__ == "__main__":
    main()
