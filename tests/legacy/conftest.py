"""Data of the size that the files were made with, a folder to work in, and the right processor."""

import shutil
from pathlib import Path

import pytest

import datadistill as dd

from .common import processor_bits
from .helpers import EXPECTED, HERE

Digits = tuple[dd.LabelledData, dd.LabelledData]


@pytest.fixture(scope="session")
def digits8() -> Digits:
    return dd.data.load("digits", size=8)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a user's own code beside it."""
    shutil.copy(HERE / "modules.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def same_processor() -> None:
    """Runs and pools know data and initial weights by their hash, to the last bit."""
    if processor_bits() != EXPECTED["processor"]:
        pytest.skip("this processor rounds otherwise: it rightly refuses to go on with these files")
