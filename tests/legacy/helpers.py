"""Where the files are, what the earlier version gave, and commands as a user types them."""

import json
import runpy
import shutil
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch
from safetensors.torch import load_file

import datadistill as dd

HERE = Path(__file__).parent
ARTEFACTS, RUNS, AFTER, POOL, WEIGHTS = (
    HERE / "data" / name
    for name in ("artefacts", "runs", "after", "digits-mlp", "pretrained.safetensors")
)
EXPECTED: dict[str, Any] = json.loads((HERE / "data" / "expected.json").read_text())
NAMED_AGAIN: dict[str, list[str]] = {
    "poisoning": ["--pool", str(POOL)],
    "own": ["--model", "modules.py:Small", "--objective", "modules.py:smooth"],
    "weights": ["--weights", str(WEIGHTS)],
}
"""What a run needs to be told again: where files are now, and that its code may run."""
RTOL = 1e-4
"""Other processors round otherwise."""


def datadistill(*words: str | Path) -> int:
    """The exit code of ``python -m datadistill``, in this process."""
    with patch.object(sys, "argv", ["datadistill", *map(str, words)]):
        try:
            runpy.run_module("datadistill", run_name="__main__")
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def copy_of(run: str, place: Path) -> Path:
    """A copy of an old run folder, to go on with."""
    return Path(shutil.copytree(RUNS / run, place / run))


def tolerance(claim: dd.Claim) -> float:
    """What rounding may do to a figure: the answers to three examples, or a thousandth."""
    return 3 / claim.examples if claim.metric.startswith("accuracy") else 1e-3 * claim.mean


def assert_reaches_what_the_old_version_reached(made: dd.DistilledData, run: str) -> None:
    """The same distilled data, with the same figure, as the earlier version's resumed run."""
    for name, tensor in load_file(AFTER / f"{run}.safetensors").items():
        torch.testing.assert_close(getattr(made, name), tensor, rtol=RTOL, atol=RTOL)
    assert made.claim
    assert made.claim.split == "test"
    wanted = EXPECTED["runs"][run]
    assert made.claim.mean == pytest.approx(wanted["claim"], abs=tolerance(made.claim))
    assert made.header.configuration["outer_step"] == wanted["outer_step"]
