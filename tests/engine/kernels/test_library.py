"""Compiling the C code on a user's machine, and doing without."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from datadistill.engine.kernels.library import library

needs_compiler = pytest.mark.skipif(library(torch.float32) is None, reason="no C compiler")
PROGRAM = """
import torch, datadistill as dd
from datadistill.engine.kernels.library import library
from datadistill.core.network import Network
from datadistill.engine.vectorised import Vectorised
there = library(torch.float32) is not None
torch.manual_seed(0)
images = torch.randn(3, 1, 28, 28)
engine = Vectorised(Network(dd.models.LeNet(), images))
weights = {n: w[None].requires_grad_() for n, w in engine.network.weights.items()}
loss = engine.losses(weights, images, torch.arange(3), torch.nn.functional.cross_entropy)
gradient = torch.autograd.grad(loss.sum(), weights["conv1.weight"])[0]
print(there, engine.stacked is not None, round(float(gradient.double().norm()), 4))
"""


def run(cache: Path, **environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "XDG_CACHE_HOME": str(cache), **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.split()


@needs_compiler
def test_the_library_is_compiled_once_and_again_if_its_file_is_damaged(tmp_path: Path) -> None:
    first = run(tmp_path)
    assert first[:2] == ["True", "True"]
    (made,) = (tmp_path / "datadistill" / "kernels").iterdir()  # nothing half-made is left
    stamp = made.stat().st_mtime_ns
    assert run(tmp_path, CC=os.environ.get("CC", "cc")) == first
    assert made.stat().st_mtime_ns == stamp
    made.write_bytes(made.read_bytes()[:1000])
    assert run(tmp_path) == first
    assert made.stat().st_size > 1000


@needs_compiler
def test_without_a_compiler_or_a_place_to_keep_it_torch_computes_the_same(tmp_path: Path) -> None:
    gradient = run(tmp_path)[2]
    occupied = tmp_path / "file"
    occupied.write_text("")
    for environment in (
        {"CC": "/nowhere/cc"},
        {"CC": "false"},
        {"DATADISTILL_KERNELS": "0"},
        {"XDG_CACHE_HOME": str(occupied)},
    ):
        there, stacked, found = run(tmp_path / "other", **environment)
        assert (there, stacked) == ("False", "True")
        assert float(found) == pytest.approx(float(gradient), rel=1e-3)
