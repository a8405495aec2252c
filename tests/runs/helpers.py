"""Small runs, in this process and in real ones, and how they are compared."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import torch

import datadistill as dd
from datadistill.runs.store.folder import RunFolder
from tests.processes import python

RESULTS = ("distilled.safetensors", "best.safetensors", "last.safetensors", "results.json")

_RANDOM = torch.Generator().manual_seed(0)
LABELS = torch.arange(60) % 10
_MEANS = 0.2 * torch.randn(10, 1, 28, 28, generator=_RANDOM)
IMAGES = torch.randn(60, 1, 28, 28, generator=_RANDOM) + _MEANS[LABELS]
DATA = dd.LabelledData(IMAGES, LABELS)
TEST = (IMAGES[:20] + 0.1, LABELS[:20])
SETTINGS: dict[str, Any] = {
    "iterations": 12,
    "validate_every": 3,
    "batch_size": 16,
    "networks": 2,
    "steps": 2,
    "epochs": 2,
    "learning_rate": 0.2,
    "outer_lr": 1.0,
    "outer_schedule": "periods",
    "averaging": 0.1,
    "test_networks": 2,
    "checkpoint_every": 2,
    "validation": 0.3,
}
"""Quick, with an outer learning rate at which the best is not the last."""


def go(run: Path | None, **settings: Any) -> dd.DistilledData:
    """A run in this process."""
    return dd.distill(DATA, dd.models.Linear(), run=run, test=TEST, **SETTINGS | settings)


def stop_after(outer_step: int) -> dict[str, Any]:
    """Settings of a run that is interrupted after an outer step."""

    def progress(told: dd.Progress) -> None:
        if told.stage == "distilling" and told.done == outer_step:
            raise KeyboardInterrupt

    return {"progress": progress}


def contents(run: Path) -> dict[str, Any]:
    """All that must be the same in a run that was stopped and in one that never was."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    times = ("seconds", "check")
    return {
        **{name: (run / name).read_bytes() for name in RESULTS},
        "config.yaml": (run / "config.yaml").read_bytes(),
        "metrics": [{k: v for k, v in row.items() if k not in times} for row in rows],
        "checkpoints": sorted(p.name for p in RunFolder(run).checkpoints.iterdir()),
    }


def arguments_with(data: Path) -> list[str]:
    """Flags of a run that is quick and needs few imports; ``data`` is made if it is missing."""
    if not data.exists():
        # Two channels, so that no picture is drawn.
        inputs = torch.cat([IMAGES, -IMAGES], 1)[:, :, ::4, ::4].numpy()
        labels = LABELS.numpy()
        np.savez(
            data,
            train_inputs=inputs,
            train_labels=labels,
            test_inputs=inputs,
            test_labels=labels,
        )
    return [
        *("--quiet", "--data", str(data), "--model", "linear", "--initialization", "fixed"),
        *("--steps", "2", "--batch-size", "32", "--iterations", "100", "--validate-every", "17"),
        *("--keep", "best", "--outer-lr", "0.3", "--learning-rate", "0.3"),
        *("--checkpoint-every", "4", "--threads", "1"),
    ]


def start(
    *arguments: str,
    program: str | None = None,
    variables: dict[str, str] | None = None,
    **options: Any,
) -> subprocess.Popen[str]:
    """A real process: ``datadistill``, or a program of the test's own."""
    how = ["-m", "datadistill"] if program is None else ["-c", program]
    return python(*how, *arguments, env=os.environ | (variables or {}), **options)


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Waits for a process; returns its code and what it said."""
    said, complained = process.communicate(timeout=300)
    return process.returncode, said + complained
