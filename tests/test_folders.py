"""A folder that is written whole or not at all."""

import signal
from pathlib import Path

import pytest

from datadistill import files
from datadistill.folders import filling

from .processes import finished


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def fill(folder: Path) -> None:
    with filling(folder) as place:
        files.write_atomically(place / "one", b"1")
        files.write_atomically(place / "below" / "two", b"2")


@pytest.mark.parametrize("exists", [False, True])
def test_all_files_are_there_at_the_end(tmp_path: Path, exists: bool) -> None:
    folder = tmp_path / "new.d"
    if exists:
        folder.mkdir()
        before = folder.stat().st_ino
        fill(folder)
        assert folder.stat().st_ino == before  # a shell may be in it
    else:
        fill(folder)
    assert names(tmp_path) == {"new.d"}
    assert names(folder) == {"one", "below"}
    assert (folder / "below" / "two").read_bytes() == b"2"


def test_a_failed_body_leaves_nothing(tmp_path: Path) -> None:
    def interrupted() -> None:
        with filling(tmp_path / "new") as place:
            files.write_atomically(place / "one", b"1")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert names(tmp_path) == set()


def test_what_a_killed_process_left_is_removed_at_the_next_start(tmp_path: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path; from datadistill import files, folders\n"
        "folders.rename = lambda *_: os.kill(os.getpid(), 9)\n"
        "with folders.filling(Path(sys.argv[1])) as place:\n"
        "    files.write_atomically(place / 'half', b'1')"
    )
    assert finished("-c", program, tmp_path / "new").returncode == -signal.SIGKILL
    (left,) = files.leftovers(tmp_path)
    assert names(left) == {"half"}
    fill(tmp_path / "new")
    assert names(tmp_path) == {"new"}


def test_a_folder_that_is_being_filled_is_not_removed(tmp_path: Path) -> None:
    with filling(tmp_path / "new") as place:
        assert files.leftovers(tmp_path) == []
        fill(tmp_path / "new")
        assert place.is_dir()


def test_a_folder_that_was_left_in_a_run_is_removed_like_a_file(tmp_path: Path) -> None:
    left = tmp_path / ".distilled-npz.datadistill-0123abcd"
    left.mkdir()
    (left / "half").touch()
    for one in files.leftovers(tmp_path):
        files.remove(one)
    assert names(tmp_path) == set()
