"""Kernels that somebody else put into the cache folder are not loaded."""

import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from datadistill.engine.kernels.kept import find, keep, load

from .conftest import KEY, Planted

OTHER = 12345
"""The number of another user."""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")


def put(cache: Path, planted: Planted) -> Path:
    """Keeps the library as datadistill itself would."""
    keep(KEY, planted.content)
    return cache / planted.name


def test_what_this_user_kept_is_found_and_loaded(cache: Path, planted: Planted) -> None:
    path = put(cache, planted)
    content = find(KEY)
    assert content is not None
    assert content == planted.content == path.read_bytes()
    assert not planted.loaded
    assert load(content).answer() == 1
    assert planted.loaded  # so the tests below can fail


def test_folders_and_files_are_for_this_user_alone(cache: Path, planted: Planted) -> None:
    before = os.umask(0)
    try:
        path = put(cache, planted)
    finally:
        os.umask(before)
    for one in (cache, cache.parent, cache.parent.parent):
        assert stat.S_IMODE(one.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [*cache.iterdir()] == [path]  # nothing half-written is left


def group_writes_folder(path: Path) -> Path:
    path.parent.chmod(0o770)
    return path.parent


def all_write_folder(path: Path) -> Path:
    path.parent.chmod(0o1777)  # to the folder itself, not even as in /tmp
    return path.parent


def all_write_above(path: Path) -> Path:
    path.parents[1].chmod(0o777)
    return path.parents[1]


def folder_is_a_link(path: Path) -> Path:
    path.parent.rename(path.parents[1] / "elsewhere")
    path.parent.symlink_to("elsewhere")
    return path.parent


def file_is_a_link(path: Path) -> Path:
    path.rename(path.parents[1] / "elsewhere")
    path.symlink_to("../elsewhere")
    return path


def group_writes_file(path: Path) -> Path:
    path.chmod(0o660)
    return path


def file_is_a_pipe(path: Path) -> Path:
    path.unlink()
    os.mkfifo(path, 0o600)
    return path


def folder_of_another_user(path: Path) -> Path:
    os.chown(path.parent, OTHER, -1)
    return path.parent


def folder_above_of_another_user(path: Path) -> Path:
    os.chown(path.parents[1], OTHER, -1)
    return path.parents[1]


def file_of_another_user(path: Path) -> Path:
    os.chown(path, OTHER, -1)
    return path


@pytest.mark.parametrize(
    "attack",
    [
        group_writes_folder,
        all_write_folder,
        all_write_above,
        folder_is_a_link,
        file_is_a_link,
        group_writes_file,
        file_is_a_pipe,
        pytest.param(folder_of_another_user, marks=as_root),
        pytest.param(folder_above_of_another_user, marks=as_root),
        pytest.param(file_of_another_user, marks=as_root),
    ],
)
def test_what_others_could_have_put_there_is_neither_loaded_nor_passed_over(
    cache: Path,
    planted: Planted,
    attack: Callable[[Path], Path],
    caplog: pytest.LogCaptureFixture,
) -> None:
    suspect = attack(put(cache, planted))
    assert find(KEY) is None
    assert find(KEY) is None
    assert not planted.loaded
    (said,) = caplog.messages  # once
    assert said.startswith(f"{suspect} ")
    assert any(remedy in said for remedy in ("chmod go-w", "rm ", "XDG_CACHE_HOME"))


def test_a_file_that_was_planted_is_replaced(cache: Path, planted: Planted) -> None:
    path = file_is_a_link(put(cache, planted))
    keep(KEY, planted.content)
    assert not path.is_symlink()
    assert find(KEY) == planted.content


def test_a_group_of_this_user_alone_may_write_above(
    cache: Path, planted: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(cache, planted)
    cache.parent.chmod(0o770)

    def own(_group: int) -> bool:
        return True

    monkeypatch.setattr("datadistill.private._is_own_group", own)
    assert find(KEY) == planted.content
    cache.parent.chmod(0o777)
    assert find(KEY) is None


def test_the_bytes_that_were_checked_are_loaded(
    cache: Path, planted: Planted, tmp_path: Path
) -> None:
    path = put(cache, planted)
    content = find(KEY)
    assert content is not None
    other = Planted(tmp_path / "other", answer=2)
    path.write_bytes(other.content)  # after the check
    assert load(content).answer() == 1
    assert not other.loaded
    assert load(other.content).answer() == 2  # not the first under the same name


def test_where_there_are_no_files_in_memory_a_private_copy_is_loaded(
    planted: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("datadistill.engine.kernels.kept.sys.platform", "darwin")
    assert load(planted.content).answer() == 1


def test_a_damaged_file_is_not_loaded(cache: Path, planted: Planted) -> None:
    path = put(cache, planted)
    path.write_bytes(path.read_bytes()[:-1])
    assert find(KEY) is None


def test_a_full_disk_is_told_and_leaves_nothing(
    cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", str(cache)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("may not mount a file system here")
    try:
        keep(KEY, bytes(2**20))
        assert [*cache.iterdir()] == []
        remount = ["mount", "-o", "remount,ro", str(cache)]
        subprocess.run(remount, check=True)
        keep(KEY, b"few")
    finally:
        subprocess.run(["umount", str(cache)], check=True)
    full, read_only = caplog.messages
    assert full.startswith(f"{cache} cannot be written (No space left on device)")
    assert read_only.startswith(f"{cache} cannot be written (Read-only file system)")
    assert "XDG_CACHE_HOME" in full
