"""The lock of a folder: it survives its file, and its holder notices when it has lost it."""

import os
from pathlib import Path

import pytest

import datadistill as dd
from datadistill import files, lock
from datadistill.errors import FileError, RunError
from datadistill.lock import locked
from tests.pools.helpers import make
from tests.runs.helpers import contents, go

LOST = "was removed or replaced while it was held: nothing more is written"


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_second_process_cannot_lock_a_folder_whose_lock_file_was_removed(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    with locked(path):
        path.unlink()
        with pytest.raises(RunError, match="is in use by another process"), locked(path):
            pass
        path.write_bytes(b"somebody else's")
        with pytest.raises(RunError, match="is in use by somebody else's"), locked(path):
            pass
    with locked(path):
        pass


@pytest.mark.parametrize("how", ["removed", "replaced", "folder moved", "folder replaced"])
def test_nothing_is_written_once_the_lock_is_lost(tmp_path: Path, how: str) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "old").touch()
    with locked(folder / ".lock"), files.appending(folder / "log", 0) as log:
        log.append(b"1")
        if how.startswith("folder"):
            folder.rename(tmp_path / "moved")
        else:
            (folder / ".lock").unlink()
        if how == "folder replaced":
            folder.mkdir()
        if how.endswith("replaced"):
            (folder / ".lock").touch()
        before = tree(tmp_path)
        for change in (
            lambda: files.write_atomically(folder / "new", b"", make_folder=False),
            lambda: files.write(folder / "below" / "new", b""),
            lambda: files.remove(folder / "old"),
            lambda: files.make(folder / "below"),
            lambda: log.append(b"2"),
        ):
            with pytest.raises(FileError, match=LOST):
                change()
        files.write_atomically(tmp_path / "elsewhere", b"")
        (tmp_path / "elsewhere").unlink()
        assert tree(tmp_path) == before
    files.write_atomically(folder / "new", b"")  # no longer held


def test_a_lock_file_that_is_replaced_before_it_is_locked_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real, taken = tmp_path / ".lock", lock.lock, 0

    def replaced_first(descriptor: int) -> None:
        nonlocal taken
        taken += 1
        if taken == 2:  # the first is the folder's
            path.unlink()
            path.touch()
        real(descriptor)

    monkeypatch.setattr(lock, "lock", replaced_first)
    with locked(path):
        assert taken == 3
        files.write_atomically(tmp_path / "new", b"")
        with path.open("rb+") as other, pytest.raises(BlockingIOError):
            real(other.fileno())


def test_a_lock_file_that_is_replaced_for_ever_is_a_typed_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / ".lock"

    def replaced(_descriptor: int) -> None:
        path.unlink(missing_ok=True)

    monkeypatch.setattr(lock, "lock", replaced)
    with pytest.raises(FileError, match="replaced again and again"), locked(path):
        pass


def test_a_run_that_loses_its_lock_writes_nothing_more_and_can_be_resumed(tmp_path: Path) -> None:
    whole, run = tmp_path / "whole", tmp_path / "run"
    go(whole)
    before: dict[str, bytes] = {}

    def lose(told: dd.Progress) -> None:
        if told.stage == "distilling" and told.done == 5:
            (run / ".lock").unlink()
            before.update(tree(run))

    with pytest.raises(FileError, match=LOST) as caught:
        go(run, progress=lose)
    assert tree(run) == before
    assert caught.value.remedy == (
        "Make sure that no other process writes there. Then resume: make the same call again: "
        f"dd.distill(…, run={str(run)!r})"
    )
    go(run)
    assert contents(run) == contents(whole)


def test_a_pool_that_loses_its_lock_gets_no_more_files(tmp_path: Path) -> None:
    before: dict[str, bytes] = {}

    def lose(_told: dd.Progress) -> None:
        if not before:
            (tmp_path / ".lock").unlink()
            before.update(tree(tmp_path))

    with pytest.raises(FileError, match=LOST):
        make(tmp_path, networks=2, held_out=1, progress=lose)
    assert tree(tmp_path) == before
    make(tmp_path, networks=2, held_out=1)


def test_a_relative_folder_is_guarded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path("run")
    folder.mkdir()
    with locked(folder / ".lock"):
        os.unlink(folder / ".lock")  # noqa: PTH108
        with pytest.raises(FileError, match=LOST):
            files.write_atomically(folder / "new", b"")
        with pytest.raises(FileError, match=LOST):
            files.write_atomically(folder.absolute() / "new", b"")
