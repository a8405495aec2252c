"""Compiling the C code on a user's machine, and doing without."""

import os
import resource
from pathlib import Path

import pytest
import torch

from datadistill.engine.kernels import library as module
from datadistill.engine.kernels.library import Kernels, kernels, library, loaded
from tests.processes import finished

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


def run(cache: Path, says: str = "", **environment: str) -> list[str]:
    """What the program prints; ``says`` is what it must complain of, in one line."""
    cache.mkdir(exist_ok=True)
    quick = cache / "quick-cc"
    quick.write_text('#!/bin/sh\nexec cc "$@" -O0\n')  # optimizations take seconds
    quick.chmod(0o755)
    variables = {**os.environ, "XDG_CACHE_HOME": str(cache), "CC": str(quick), **environment}
    done = finished("-c", PROGRAM, env=variables)
    assert done.returncode == 0, done.stderr
    assert says in done.stderr
    assert done.stderr.count("\n") == (1 if says else 0), done.stderr
    return done.stdout.split()


@needs_compiler
def test_the_library_is_compiled_once_and_again_if_its_file_is_damaged(tmp_path: Path) -> None:
    first = run(tmp_path)
    assert first[:2] == ["True", "True"]
    (made,) = (tmp_path / "datadistill" / "kernels").iterdir()  # nothing half-made is left
    stamp = made.stat().st_mtime_ns
    assert run(tmp_path) == first
    assert made.stat().st_mtime_ns == stamp
    made.write_bytes(made.read_bytes()[:1000])
    assert run(tmp_path) == first
    assert made.stat().st_size > 1000


@needs_compiler
def test_without_a_compiler_torch_computes_the_same_and_says_so(tmp_path: Path) -> None:
    gradient = run(tmp_path)[2]
    for says, environment in {
        "No C kernels (no C compiler)": {"CC": "/nowhere/cc"},
        "No C kernels (the compiler failed)": {"CC": "false"},
        "": {"DATADISTILL_KERNELS": "0"},  # as the user wants it
    }.items():
        there, stacked, found = run(tmp_path / "other", says, **environment)
        assert (there, stacked) == ("False", "True")
        assert float(found) == pytest.approx(float(gradient), rel=1e-3)


def again() -> Kernels:
    """The kernels as a new process would find them."""
    loaded.cache_clear()
    try:
        return kernels(torch.float32)
    finally:
        loaded.cache_clear()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler without its optimizations, which take seconds."""
    monkeypatch.setattr(module, "FLAGS", [*module.FLAGS[1:], "-O0"])


@pytest.mark.usefixtures("cache")
def test_no_compiler_in_the_path_is_told_once_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert str(again()) == str(again()) == "none: no C compiler"
    (said,) = caplog.messages
    assert "takes longer and changes the last bits of results. Install one, or name it in" in said


@needs_compiler
@pytest.mark.usefixtures("cache")
def test_too_few_descriptors_are_told(caplog: pytest.LogCaptureFixture) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    descriptor = os.open(os.devnull, os.O_RDONLY)  # the lowest that is free
    os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptor, before[1]))
    try:
        found = again()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert str(found) == "none: too many open files"
    (said,) = caplog.messages
    assert "ulimit -n" in said


@needs_compiler
def test_no_temporary_folder_is_told(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module.tempfile, "tempdir", str(tmp_path / "missing"))
    assert str(again()) == "none: no temporary folder to compile in"
    (said,) = caplog.messages
    assert "Set TMPDIR" in said


@needs_compiler
@pytest.mark.usefixtures("cache", "quick")
def test_without_a_place_to_keep_it_the_library_is_compiled_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert again().functions
    (said,) = caplog.messages
    assert "cannot be written" in said
    assert "every process compiles its code anew" in said


@needs_compiler
@pytest.mark.usefixtures("quick")
def test_a_planted_kernel_of_the_right_name_is_not_run(
    cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own = again()
    (kept,) = cache.iterdir()
    cache.chmod(0o777)
    kept.write_bytes(b"planted")
    assert str(again()) == str(own)  # compiled anew, without a file
    assert [*cache.iterdir()] == [kept]
    assert kept.read_bytes() == b"planted"
    (said,) = caplog.messages
    assert said == (
        f"{cache} can be written by others. Nothing there is used; code is compiled anew. "
        f"If its content is yours: chmod go-w {cache}"
    )
