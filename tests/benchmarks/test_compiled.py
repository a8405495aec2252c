"""What compiled functions are measured for is the distiller's own gradient."""

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from benchmarks.compiled import Compiled, differ
from benchmarks.speed import prepare

from tests.helpers import NETWORKS

NO_COMPILER = not any(shutil.which(name) for name in ("c++", "g++", "clang++"))


@pytest.mark.parametrize(
    "backend",
    [
        "aot_eager",  # inductor's graphs, computed without C++
        pytest.param(
            "inductor",
            marks=[
                pytest.mark.slow,
                pytest.mark.skipif(NO_COMPILER, reason="torch.compile needs a C++ compiler"),
            ],
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")
def test_the_compiled_gradient_is_that_of_the_distiller(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    settings: dict[str, Any] = {"steps": 2, "epochs": 2, "batch_size": 12, "dtype": "float64"}
    distillation = prepare(NETWORKS["mlp"](10), (1, 6, 6), 2, **settings)
    compiled = Compiled(distillation, partial(torch.compile, backend=backend))
    try:
        found = compiled.first_outer_step(distillation)()
    finally:
        torch.compiler.reset()
    assert differ(distillation, found) < 1e-10
