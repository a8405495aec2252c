"""The core needs no engine but its own, and gives what the fast one gives."""

import os
import subprocess
import sys
from pathlib import Path

import torch
from torch import Tensor

import datadistill
from datadistill.engine import FastEngine
from tests.core.distil_digits import distil

PROGRAM = """
import sys
import types

import torch


class Refused:
    "Only the core, its errors and the check of arguments can be imported."

    def find_spec(self, name, path=None, target=None):
        allowed = ("datadistill.core", "datadistill.errors", "datadistill.given")
        if name.startswith("datadistill.") and not name.startswith(allowed):
            raise ImportError(f"{name} is not there")


package = types.ModuleType("datadistill")
package.__path__ = [sys.argv[1]]
sys.modules["datadistill"] = package
sys.meta_path.insert(0, Refused())

from tests.core.distil_digits import distil

try:
    import datadistill.engine
except ImportError:
    torch.save(distil(), sys.argv[2])
"""


def test_the_core_alone_distils_digits_and_gives_the_result_of_the_fast_engine(
    tmp_path: Path,
) -> None:
    package, made = Path(datadistill.__file__).parent, tmp_path / "made.pt"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", PROGRAM, str(package), str(made)]
    subprocess.run(command, env=environment, check=True, timeout=300)
    alone: dict[str, Tensor]
    alone, losses = torch.load(made)
    engines: list[FastEngine] = []

    def fast(*given: object) -> FastEngine:
        engines.append(FastEngine(*given))  # pyright: ignore[reportArgumentType]
        return engines[0]

    found, fast_losses = distil(fast)
    assert engines[0].vectorised.stacked  # networks side by side, by the kernels in C
    assert sum(losses[-5:]) < 0.85 * sum(losses[:5])
    assert len(losses) == len(fast_losses) == 20
    for name, expected in alone.items():
        difference = float((found[name] - expected).abs().max())
        assert difference < 1e-10 * float(expected.abs().max()), name
