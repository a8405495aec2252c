"""Writing files: temporary files that a crash leaves are removed, and nobody else's."""

import ast
import signal
from pathlib import Path

import pytest
from benchmarks.power_loss.disk import Recorder, all_fates

import datadistill
from datadistill import files
from datadistill.errors import FileError
from datadistill.pools.folder import PoolFolder
from datadistill.runs.store.folder import RunFolder
from datadistill.runs.store.restore import opened
from datadistill.tables.result_cache import ResultCache
from tests.processes import finished
from tests.runs.helpers import go

OURS = (
    ".results.datadistill-0123abcd.json",
    ".distilled.datadistill-00000000.png",
    ".weights.datadistill-89abcdef",
)
EARLIER = (
    ".step-00000012.0123abcd.safetensors",
    ".config.01234567.yaml",
    ".train-00000-00015.89abcdef.safetensors",
)
USERS = (
    ".notes.of.mine.txt",
    ".results.json.swp",
    ".a.b.c",
    ".photo.0123abcd.jpg",
    ".datadistill-0123abcd.json",
    ".results.datadistill-0123abcdef.json",
    ".results.datadistill-XYZ.json",
    "results.datadistill-0123abcd.json",
)


def fill(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in (*OURS, *EARLIER, *USERS):
        (folder / name).touch()


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.is_file()}


def test_what_a_crash_left_in_a_run_folder_is_removed_when_it_is_opened(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    fill(tmp_path)
    fill(run.checkpoints)
    with opened(run):
        assert names(tmp_path) == {*USERS, ".lock"}
        assert names(run.checkpoints) == {*USERS}


def test_what_a_crash_left_in_a_pool_is_removed(tmp_path: Path) -> None:
    fill(tmp_path)
    PoolFolder(tmp_path, None).clean()  # pyright: ignore[reportArgumentType]
    assert names(tmp_path) == {*USERS}


def test_among_a_users_files_only_leftovers_of_the_same_file_are_removed(tmp_path: Path) -> None:
    fill(tmp_path)
    ResultCache.read(tmp_path / "results.json", {})
    assert names(tmp_path) == {*OURS[1:], *EARLIER, *USERS}
    files.write_atomically(tmp_path / "weights", b"")
    assert names(tmp_path) == {OURS[1], *EARLIER, *USERS, "weights"}
    files.check_writable(tmp_path / "distilled.png")
    assert names(tmp_path) == {*EARLIER, *USERS, "weights"}


def test_a_temporary_file_that_is_being_written_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    with files.replacing(path) as first:
        files.write(first, b"first")
        assert files.leftovers(tmp_path) == []
        files.write_atomically(path, b"second")
        assert first.exists()
    assert path.read_bytes() == b"first"
    assert names(tmp_path) == {"results.json"}


def test_a_temporary_file_of_a_killed_process_is_removed_at_the_next_start(tmp_path: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path; from datadistill import files\n"
        "files.rename = lambda *_: os.kill(os.getpid(), 9)\n"
        "files.write_atomically(Path(sys.argv[1]), b'half')"
    )
    path = tmp_path / "results.json"
    assert finished("-c", program, path).returncode == -signal.SIGKILL
    (left,) = files.leftovers(tmp_path)
    assert left.read_bytes() == b"half"
    ResultCache.read(path, {})
    assert names(tmp_path) == set()


def test_a_failed_body_leaves_nothing(tmp_path: Path) -> None:
    def interrupted() -> None:
        with files.replacing(tmp_path / "new") as temporary:
            temporary.write_bytes(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert names(tmp_path) == set()


def test_a_link_in_place_of_a_temporary_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_bytes(b"mine")
    (tmp_path / OURS[0]).symlink_to(tmp_path / "precious")
    files.write_atomically(tmp_path / "results.json", b"")
    assert (tmp_path / "precious").read_bytes() == b"mine"


def test_every_folder_that_is_made_survives_a_power_loss(tmp_path: Path) -> None:
    record = Recorder(tmp_path)
    with record.watched():
        go(tmp_path / "a" / "b" / "run", iterations=1)
    nothing_unsynced = record.disk(len(record.changes)).after(all_fates(range(0))[0])
    run = RunFolder(Path("a/b/run"))
    assert {str(run.checkpoints), str(run.metrics), str(run.config), str(run.results)} <= {
        *nothing_unsynced
    }


def test_a_folder_that_cannot_be_made_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match="cannot be written: Not a directory"):
        files.write_atomically(tmp_path / "file" / "below" / "new", b"")


WRITES = {
    *("write_bytes", "write_text", "mkdir", "makedirs", "unlink", "rmtree", "ftruncate"),
    *("rename", "fsync", "touch", "savez", "save_file", "symlink_to", "rmdir", "truncate"),
}
ELSEWHERE = {"data/fetch", "engine/kernels", "files.py", "lock.py", "private.py"}
"""Downloads and compiled code are fetched or made again if they are lost."""


def test_all_that_must_survive_is_written_by_files() -> None:
    home = Path(datadistill.__file__).parent
    found: list[str] = []
    for path in sorted(home.rglob("*.py")):
        name = path.relative_to(home).as_posix()
        if any(name.startswith(place) for place in ELSEWHERE):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            of_files = isinstance(node.func.value, ast.Name) and node.func.value.id == "files"
            modes = [a.value for a in node.args if isinstance(a, ast.Constant)]
            opens = node.func.attr == "open" and {*modes} & {"w", "wb", "a", "ab", "x", "xb", "rb+"}
            if (node.func.attr in WRITES or opens) and not of_files:
                found.append(f"{name} {node.func.attr}")
    # The null device, an exported script, and the removal of what TensorBoard has written.
    assert sorted(found) == [
        "cli/main.py open",
        "exchange/standalone.py save_file",
        "runs/store/folder.py rmtree",
    ]
