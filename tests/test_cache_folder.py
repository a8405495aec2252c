"""The one cache folder."""

import os
import pwd
import stat
import sys
from pathlib import Path

import pytest

from datadistill import files
from datadistill.data import data_folder
from datadistill.engine.cache import INDUCTOR, trusted_folder, use_own_inductor_folder
from datadistill.files import cache_folder
from datadistill.notices import warn_once

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


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without HOME and without an entry in the list of users, as in many containers."""

    def no_entry(number: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {number}")

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", no_entry)
    files._temporary_cache.cache_clear()  # pyright: ignore[reportPrivateUsage]
    warn_once.cache_clear()


@pytest.mark.usefixtures("homeless")
def test_a_user_without_a_home_gets_a_temporary_one_and_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = cache_folder()
    assert folder.is_absolute()
    assert folder == cache_folder() == data_folder()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert trusted_folder("kernels") == folder / "kernels"
    assert [*tmp_path.iterdir()] == []  # no folder that is called ~
    (said,) = caplog.messages
    assert "Set HOME or XDG_CACHE_HOME" in said


def test_compiled_updates_are_kept_where_others_cannot_write(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(INDUCTOR, raising=False)
    use_own_inductor_folder()
    own = home / ".cache" / "datadistill" / "inductor"
    assert os.environ[INDUCTOR] == str(own)
    own.chmod(0o777)
    del os.environ[INDUCTOR]
    warn_once.cache_clear()
    use_own_inductor_folder()
    other = Path(os.environ[INDUCTOR])
    assert other != own
    assert stat.S_IMODE(other.stat().st_mode) == 0o700


def test_what_the_user_says_of_compiled_updates_stays(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(INDUCTOR, str(home / "mine"))
    use_own_inductor_folder()
    assert os.environ[INDUCTOR] == str(home / "mine")
