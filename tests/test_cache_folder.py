"""The one cache folder."""

import sys
from pathlib import Path

import pytest

from datadistill.data import data_folder
from datadistill.files import cache_folder

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have other folders")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in "XDG_CACHE_HOME", "DATADISTILL_DATA":
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_by_default_it_is_in_the_home_folder(home: Path) -> None:
    assert cache_folder() == data_folder() == home / ".cache" / "datadistill"
    assert not cache_folder().exists()


def test_the_environment_can_move_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    assert cache_folder() == data_folder() == home / "cache" / "datadistill"
    monkeypatch.setenv("DATADISTILL_DATA", "~/data")
    assert data_folder() == home / "data"
    assert data_folder(home / "given") == home / "given"
    assert cache_folder() == home / "cache" / "datadistill"
