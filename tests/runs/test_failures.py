"""What else can happen to a run: a full disk, a lost folder, two processes, a jumping clock."""

import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
import torch

import datadistill as dd
from datadistill import files
from datadistill.artefact import container
from datadistill.errors import FileError, NonFiniteError, RunError
from datadistill.lock import locked
from datadistill.runs.store import checkpoint, metrics
from datadistill.runs.store.checkpoint import newest, read_checkpoint
from datadistill.runs.store.folder import RunFolder
from tests.runs.helpers import arguments_with, contents, finish, go, start, stop_after


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole")
    go(path)
    return path


def failing(real: Callable[..., Any], after: int) -> Callable[..., Any]:
    """The same function, which raises for a full disk after some calls."""
    left = after

    def fails(*arguments: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*arguments)

    return fails


@pytest.mark.parametrize("after", [2, pytest.param(3, marks=pytest.mark.slow), 4])
@pytest.mark.parametrize("stage", ["write", "sync", "rename", "sync_folder", "remove"])
def test_a_failed_write_is_reported_and_the_previous_checkpoint_loads(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str, after: int
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(files, stage, failing(getattr(files, stage), after))
        with pytest.raises(FileError, match="No space left on device") as caught:
            go(tmp_path)
    assert "Then resume: make the same call again: dd.distill(" in caught.value.remedy
    assert caught.value.exit_code == 1
    found, skipped = newest(tmp_path / "checkpoints")
    assert skipped == []
    assert all(torch.isfinite(t).all() for t in found.state.distiller.parameters.values())
    go(tmp_path)
    assert contents(tmp_path) == contents(whole)


def test_a_failed_line_of_the_log_is_reported_and_mended(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, is_full = os.write, False

    def full(descriptor: int, content: bytes) -> int:
        nonlocal is_full
        if is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        is_full = bytes(content).startswith(b'{"outer_step": 7')
        return real(descriptor, content[:100] if is_full else content)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(FileError, match=r"metrics\.jsonl cannot be written: No space left"):
            go(tmp_path)
    assert (
        (tmp_path / "metrics.jsonl").read_bytes().splitlines()[-1].startswith(b'{"outer_step": 7')
    )
    go(tmp_path)
    assert contents(tmp_path) == contents(whole)


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    """A real file system of one megabyte."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("may not mount a file system here")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def wait_for_rows(run: Path, rows: int, process: subprocess.Popen[str]) -> None:
    log = RunFolder(run).metrics
    while not log.exists() or log.read_bytes().count(b"\n") < rows:
        assert process.poll() is None, finish(process)
        time.sleep(0.01)


def endless(data: Path) -> list[str]:
    schedule = ["--outer-schedule", "periods", "--checkpoint-every", "3"]
    return [*arguments_with(data), "--iterations", "1000000", *schedule]


def ended(run: Path, tmp_path: Path) -> None:
    """The run can be resumed and ends as one that never met a failure."""
    reached = newest(run / "checkpoints")[0].state.outer_step
    more = ["--iterations", str(reached + 10)]
    code, said = finish(start("resume", str(run), *more))
    assert code == 0, said
    other = tmp_path / "never-stopped"
    arguments = [*endless(tmp_path / "data.npz"), *more, "--run", str(other)]
    code, said = finish(start("distill", *arguments))
    assert code == 0, said
    assert contents(run)["distilled.safetensors"] == contents(other)["distilled.safetensors"]
    assert contents(run)["metrics"] == contents(other)["metrics"]


def test_a_full_disk_ends_the_run_with_code_1_and_it_goes_on_when_there_is_room(
    small_disk: Path, tmp_path: Path
) -> None:
    run = small_disk / "run"
    process = start("distill", *endless(tmp_path / "data.npz"), "--run", str(run))
    wait_for_rows(run, 10, process)
    filler = small_disk / "filler"
    subprocess.run(["dd", "if=/dev/zero", f"of={filler}", "bs=4k"], capture_output=True)
    assert shutil.disk_usage(small_disk).free == 0
    code, said = finish(process)
    assert code == 1, said
    assert "No space left on device" in said
    assert f"Then resume: datadistill resume {run}" in said
    assert "Traceback" not in said
    filler.unlink()
    ended(run, tmp_path)


def test_a_limit_of_file_sizes_ends_the_run_with_code_1_and_it_goes_on_without(
    tmp_path: Path,
) -> None:
    run = tmp_path / "run"
    process = start("distill", *endless(tmp_path / "data.npz"), "--run", str(run))
    wait_for_rows(run, 10, process)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (2000, 2000))
    code, said = finish(process)
    assert code == 1, said
    assert "cannot be written: File too large" in said
    ended(run, tmp_path)


def test_a_folder_removed_while_the_run_is_going_ends_it_with_a_clear_message(
    tmp_path: Path,
) -> None:
    run = tmp_path / "run"
    process = start("distill", *endless(tmp_path / "data.npz"), "--run", str(run))
    wait_for_rows(run, 5, process)
    run.rename(tmp_path / "gone")  # at one instant: not its lock first
    shutil.rmtree(tmp_path / "gone", ignore_errors=True)
    code, said = finish(process)
    assert code == 1, said
    assert "was removed during the run" in said
    assert "Traceback" not in said
    assert not run.exists()


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 75)])
def test_a_first_signal_finishes_the_step_saves_it_and_ends_with_the_code_of_the_signal(
    tmp_path: Path, number: signal.Signals, expected: int
) -> None:
    run = tmp_path / "run"
    arguments = [*endless(tmp_path / "data.npz"), "--checkpoint-every", "1000000"]
    process = start("distill", *arguments, "--run", str(run))
    wait_for_rows(run, 5, process)
    process.send_signal(number)
    code, said = finish(process)
    assert code == expected, said
    reached = newest(run / "checkpoints")[0].state.outer_step
    assert reached >= 5
    assert f"outer step {reached:,} is saved.\nTo resume: datadistill resume {run}\n" in said
    assert "Traceback" not in said
    assert len(metrics.read_metrics(run / "metrics.jsonl")) == reached
    ended(run, tmp_path)


def test_a_second_signal_ends_the_run_at_once(tmp_path: Path) -> None:
    # Outer steps of many seconds, in many small operations.
    slow = ["--steps", "300", "--epochs", "100", "--quiet", "--iterations", "9"]
    run = tmp_path / "run"
    process = start("distill", "--model", "linear", *slow, "--run", str(run))
    while not RunFolder(run).config.exists():
        assert process.poll() is None, finish(process)
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    while "Press Ctrl-C again to quit now." not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    code, said = finish(process)
    assert code == 130
    assert "will be repeated.\nTo resume: datadistill resume" in said
    assert newest(run / "checkpoints")[0].state.outer_step == 0


def test_two_processes_cannot_write_one_run_and_a_crash_frees_it(tmp_path: Path) -> None:
    run = tmp_path / "run"
    first = start("distill", *endless(tmp_path / "data.npz"), "--run", str(run))
    wait_for_rows(run, 3, first)
    code, said = finish(start("resume", str(run)))
    assert code == 2
    assert f"is in use by process {first.pid} on " in said
    assert first.poll() is None
    first.kill()
    finish(first)
    code, said = finish(start("resume", str(run), "--iterations", "1", "--quiet"))
    assert code == 2
    assert "already" in said  # it got past the lock


def test_a_lock_is_held_against_threads_of_the_same_process_too(tmp_path: Path) -> None:
    with (
        locked(tmp_path / ".lock"),
        pytest.raises(RunError, match=f"in use by process {os.getpid()}"),
        locked(tmp_path / ".lock"),
    ):
        pass
    with locked(tmp_path / ".lock"):
        pass


def test_a_read_only_folder_is_told_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(*arguments: Any) -> int:
        raise PermissionError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "open", read_only)  # the test may run as root, whom nothing stops
    with pytest.raises(FileError, match="cannot be written: Read-only file system"):
        go(tmp_path)


def test_a_clock_that_jumps_backwards_changes_nothing(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = iter(range(10**9, 0, -1000))
    monkeypatch.setattr(time, "time", lambda: float(next(now)))
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, **stop_after(7))
    for age, path in enumerate(sorted((tmp_path / "checkpoints").iterdir())):
        os.utime(path, (0, 10**9 - age * 10**6))  # newer ones look older
    go(tmp_path)
    assert contents(tmp_path) == contents(whole)


def test_checkpoints_come_by_time_too(tmp_path: Path) -> None:
    written: list[str] = []

    def watch(told: dd.Progress) -> None:
        written.append(max(p.name for p in (tmp_path / "checkpoints").iterdir()))

    go(tmp_path, checkpoint_every=None, checkpoint_minutes=1e-9, progress=watch)
    assert written[1:12] == [f"step-{t:08d}.safetensors" for t in range(1, 12)]


def test_only_the_newest_two_checkpoints_are_kept(tmp_path: Path) -> None:
    counts: list[int] = []
    folder = tmp_path / "checkpoints"

    def count(told: dd.Progress) -> None:
        counts.append(len(list(folder.iterdir())))

    go(tmp_path, checkpoint_every=1, progress=count)
    assert max(counts) == 2
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["step-00000011.safetensors", "step-00000012.safetensors"]


def test_a_checkpoint_that_the_disk_does_not_read_is_not_removed(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, **stop_after(7))
    path, real = tmp_path / "checkpoints" / "step-00000006.safetensors", container.read_regular

    def failing_to_read(file: Path, at_most: int | None = None) -> bytes:
        if file == path:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(file, at_most)

    with monkeypatch.context() as patch:
        patch.setattr(container, "read_regular", failing_to_read)
        with pytest.raises(RunError, match="cannot be read: Input/output error") as caught:
            go(tmp_path)
    assert "delete it to resume from the one before" in caught.value.remedy
    assert path.exists()
    go(tmp_path)
    assert contents(tmp_path) == contents(whole)


def test_a_state_that_is_not_finite_is_never_written(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, **stop_after(5))
    path = tmp_path / "checkpoints" / "step-00000004.safetensors"
    found = read_checkpoint(path)
    found.state.distiller.parameters["inputs"][0, 0] = torch.nan
    before = path.read_bytes()
    with pytest.raises(NonFiniteError, match=r"parameters/inputs is not finite after outer step 4"):
        checkpoint.write_checkpoint(path.parent, found)
    assert path.read_bytes() == before


@pytest.mark.parametrize("settings", [{"outer_lr": 1e38}, {"learning_rate": 1e38}])
def test_huge_learning_rates_leave_a_finite_checkpoint(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    with pytest.raises(NonFiniteError, match="5 outer steps in a row"):
        go(tmp_path, **settings, iterations=40, checkpoint_every=1)
    state = newest(tmp_path / "checkpoints")[0].state.distiller
    trees = (state.parameters, state.adam.first, state.adam.second)
    assert all(torch.isfinite(t).all() for tree in trees for t in tree.values())
    rows = metrics.read_metrics(tmp_path / "metrics.jsonl")
    assert rows[-1].rejected >= 4
    assert json.loads((tmp_path / "metrics.jsonl").read_text().splitlines()[-1])["loss"] is None
