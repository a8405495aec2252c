"""Libraries that come with a wheel spare users the compiler."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from datadistill.engine.kernels import shipped

HOST = shipped.levels()
needs_levels = pytest.mark.skipif(
    sys.platform != "linux" or not HOST, reason="needs Linux on x86-64"
)
WITHOUT_COMPILER = """
import torch
from datadistill.engine.kernels.library import functions_for, kernels
from datadistill.engine.kernels.averaging import Averaging
x = torch.arange(16.0).view(1, 1, 4, 4)
made = Averaging(functions_for(x), x.shape, (2, 2))
print(kernels(torch.float32), made.average(x)[0].flatten().tolist())
"""


def plant(folder: Path, real: str, level: str) -> bytes:
    content = f"{real} {level}".encode()
    (folder / shipped._name(real, level)).write_bytes(content)  # pyright: ignore[reportPrivateUsage]
    return content


@needs_levels
def test_the_most_able_level_that_the_host_has_is_taken(tmp_path: Path) -> None:
    assert shipped.shipped("float", tmp_path) is None
    for level in reversed(HOST):
        content = plant(tmp_path, "float", level)
        assert shipped.shipped("float", tmp_path) == content
    assert shipped.shipped("double", tmp_path) is None


@needs_levels
def test_those_that_the_host_does_not_have_are_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "cpuinfo"
    old.write_text("processor : 0\nflags : sse4_2 ssse3 popcnt avx\n")
    monkeypatch.setattr(shipped, "CPUINFO", old)
    for level in shipped.LEVELS:
        plant(tmp_path, "float", level)
    assert shipped.shipped("float", tmp_path) == b"float x86-64-v2"


@needs_levels
@pytest.mark.slow
def test_kernels_of_a_copy_with_libraries_need_no_compiler(tmp_path: Path) -> None:
    if not shutil.which("cc"):
        pytest.skip("needs a C compiler: cc")
    package = Path(shipped.__file__).parents[2]
    copy = shutil.copytree(package, tmp_path / "datadistill")
    shipped.compile_for("float", HOST[-1], copy / "engine" / "kernels" / "built")
    given = {**os.environ, "PYTHONPATH": str(tmp_path), "CC": "none", "XDG_CACHE_HOME": str(copy)}
    words = [sys.executable, "-c", WITHOUT_COMPILER]
    done = subprocess.run(words, env=given, capture_output=True, text=True, check=True)
    assert "[2.5, 4.5, 10.5, 12.5]" in done.stdout
    assert not done.stderr
