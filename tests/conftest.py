"""Settings of all tests: one thread each, the devices that are there, and real data."""

import gc
import os
import signal
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from datadistill.cli import outcome
from datadistill.core.device import available_devices
from datadistill.data import LabelledData, load
from datadistill.runs.team import launch
from tests import processes

# Virtual machines may have AMX by name only; oneDNN then fails at bfloat16, and later at float32.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
# Two OpenMP threads that spin against other load are far slower than one.
os.environ.setdefault("OMP_NUM_THREADS", "1")
torch.set_num_threads(1)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell script
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # by nohup
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

FIRST = (
    *("cli/test_quickstart", "runs/test_kills", "runs/test_processes", "engine/test_memory"),
    *("test_examples", "test_one_file", "runs/test_failures", "docs/test_slurm"),
)
"""Files with tests that take long: at the end one worker would still be at them, alone."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests come first."""
    items.sort(key=lambda item: not item.nodeid.startswith(tuple(f"tests/{n}" for n in FIRST)))


def pytest_xdist_auto_num_workers() -> int:
    """One more worker than cores: tests that wait for real processes leave room for others."""
    return 1 + (os.cpu_count() or 1)


def pytest_collection_finish() -> None:
    """What has been imported is never garbage: to look through it again and again takes long."""
    gc.freeze()


def _never(_shape: object) -> bool:
    return False


@pytest.fixture(autouse=True)
def no_pictures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs draw no pictures, which takes longer than a small run; ``pictures`` asks for them."""
    if "pictures" not in request.fixturenames:
        monkeypatch.setattr(outcome, "are_images", _never)


@pytest.fixture
def forked_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The workers of runs are real processes that need not import torch again."""
    made = SimpleNamespace(PIPE=subprocess.PIPE, DEVNULL=subprocess.DEVNULL, Popen=processes.worker)
    monkeypatch.setattr(launch, "subprocess", made)


@pytest.fixture
def pictures() -> None:
    """Lets commands draw the distilled data of a run in this process."""


@pytest.fixture(params=available_devices())
def device(request: pytest.FixtureRequest) -> str:
    """Every kind of device that this machine has."""
    return request.param


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder with real data sets, from ``$DATADISTILL_DATA``."""
    folder = os.environ.get("DATADISTILL_DATA")
    if not folder:
        pytest.skip("needs real data: set $DATADISTILL_DATA to a folder that holds them")
    return Path(folder)


@pytest.fixture(scope="session")
def mnist(data_dir: Path) -> tuple[LabelledData, LabelledData]:
    if not (data_dir / "mnist").is_dir():
        pytest.skip(f"needs the real MNIST: put its four files into {data_dir / 'mnist'}")
    return load("mnist", data_dir)


@pytest.fixture(scope="session")
def digits() -> tuple[LabelledData, LabelledData]:
    return load("digits")
