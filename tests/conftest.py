"""Settings of all tests: one thread each, the devices that are there, and real data."""

import os
import signal
from pathlib import Path

import pytest
import torch

from datadistill.cli import outcome
from datadistill.core.device import available_devices
from datadistill.data import LabelledData, load

# Two OpenMP threads that spin against other load are far slower than one.
os.environ.setdefault("OMP_NUM_THREADS", "1")
torch.set_num_threads(1)

# Commands in the background of a script ignore Ctrl-C, and so would the processes of tests.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers() -> int:
    """One more worker than cores: tests that wait for real processes leave room for others."""
    return 1 + (os.cpu_count() or 1)


def _never(_shape: object) -> bool:
    return False


@pytest.fixture(autouse=True)
def no_pictures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs draw no pictures, which takes longer than a small run; ``pictures`` asks for them."""
    if "pictures" not in request.fixturenames:
        monkeypatch.setattr(outcome, "are_images", _never)


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
