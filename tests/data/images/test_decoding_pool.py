"""Worker processes: the same pixels, and never left behind."""

import gc
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import datadistill
from datadistill.data.images.decode import DRAWS, Job
from datadistill.data.images.decoding_pool import DecodingPool
from datadistill.errors import DataError

from ..makers import make_image

SCRIPT = """
import os, sys, time, types
import numpy as np

for name, path in ("datadistill", sys.argv[1]), ("datadistill.data", sys.argv[1] + "/data"):
    sys.modules[name] = types.ModuleType(name)  # without torch, which takes seconds to import
    sys.modules[name].__path__ = [path]
from datadistill.data.images.decode import Job
from datadistill.data.images.decoding_pool import DecodingPool

# There is no if __name__ == "__main__" here, as in many a user's script.
pool = DecodingPool(workers=2)
jobs = [Job(path, 16, 3) for path in sys.argv[2:]]
pixels = np.empty((len(jobs), 3, 16, 16), np.uint8)
pool.decode(jobs, pixels)
print(*[process.pid for process in pool._processes], flush=True)
"""
PACKAGE = str(Path(datadistill.__file__).parent)
ENDINGS = {
    "in peace": "",
    "by an error": "raise SystemExit(3)",
    "while decoding": "while True: pool.decode(jobs, pixels)",
    "while computing": "time.sleep(60)",
    "and goes on": """
try:
    while True: pool.decode(jobs, pixels)
except KeyboardInterrupt:
    before = pixels.copy()
    pool.decode(jobs, pixels)
    assert (pixels == before).all()
    print(*[process.pid for process in pool._processes], flush=True)
""",
}


@pytest.fixture
def jobs(tmp_path: Path) -> list[Job]:
    return [Job(str(make_image(tmp_path / f"{i}.jpg", seed=i)), 16, 3) for i in range(70)]


def decoded(pool: DecodingPool, jobs: list[Job]) -> np.ndarray:
    pixels = np.zeros((len(jobs), 3, 16, 16), np.uint8)
    pool.decode(jobs, pixels)
    return pixels


def pids(pool: DecodingPool) -> list[int]:
    return [process.pid for process in pool._processes]  # pyright: ignore[reportPrivateUsage]


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"  # nobody may be there to collect it


def wait_for(condition: Callable[[], bool]) -> bool:
    for _ in range(200):
        if condition():
            return True
        time.sleep(0.05)
    return False


linux_only = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.mark.parametrize("draws", [None, tuple(np.linspace(0, 0.99, DRAWS).tolist())])
def test_pixels_do_not_depend_on_the_number_of_workers(
    jobs: list[Job], draws: tuple[float, ...] | None
) -> None:
    jobs = [job._replace(draws=draws) for job in jobs]
    alone = decoded(DecodingPool(workers=0), jobs)
    for workers in (1, 3):
        pool = DecodingPool(workers)
        np.testing.assert_array_equal(decoded(pool, jobs), alone)
        np.testing.assert_array_equal(decoded(pool, jobs), alone)  # from the cache
        pool.close()


def test_errors_do_not_depend_on_the_number_of_workers(jobs: list[Job]) -> None:
    for number in (69, 20, 41):
        Path(jobs[number].path).write_bytes(b"damaged")
    messages: set[str] = set()
    for workers in (0, 1, 3):
        pool = DecodingPool(workers)
        with pytest.raises(DataError) as caught:
            decoded(pool, jobs)
        messages.add(str(caught.value))
        assert decoded(pool, jobs[:20]).any()  # and it goes on working
        pool.close()
    assert len(messages) == 1
    assert jobs[20].path in messages.pop()


def test_workers_start_when_they_are_first_needed(jobs: list[Job]) -> None:
    pool = DecodingPool(workers=2)
    assert not pids(pool)
    decoded(pool, jobs)
    assert len(pids(pool)) == 2
    pool.close()
    assert not pids(pool)


@linux_only
def test_workers_end_with_the_object(jobs: list[Job]) -> None:
    pool = DecodingPool(workers=2)
    decoded(pool, jobs)
    workers = pids(pool)
    assert all(map(is_alive, workers))
    del pool
    gc.collect()
    assert not any(map(is_alive, workers))


def test_a_worker_that_dies_is_an_error_and_not_the_end(jobs: list[Job]) -> None:
    pool = DecodingPool(workers=2)
    before = decoded(pool, jobs)
    os.kill(pids(pool)[0], signal.SIGKILL)
    with pytest.raises(DataError, match="ended unexpectedly"):
        decoded(pool, jobs)
    np.testing.assert_array_equal(decoded(pool, jobs), before)
    pool.close()


def test_processes_of_one_machine_share_its_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1000")
    assert DecodingPool().workers == 1


def test_a_copy_has_workers_of_its_own(jobs: list[Job]) -> None:
    pool = DecodingPool(workers=1, cache_bytes=123)
    before = decoded(pool, jobs[:3])
    copy: DecodingPool = pickle.loads(pickle.dumps(pool))  # noqa: S301
    assert (copy.workers, copy.cache_bytes) == (1, 123)
    assert not pids(copy)
    np.testing.assert_array_equal(decoded(copy, jobs[:3]), before)
    pool.close()
    copy.close()


@linux_only
@pytest.mark.parametrize(
    ("ending", "signals"),
    [
        ("in peace", None),
        ("by an error", None),
        ("while decoding", signal.SIGINT),
        ("while decoding", signal.SIGKILL),
        ("while computing", signal.SIGTERM),
        ("while computing", signal.SIGINT),
        ("and goes on", signal.SIGINT),
    ],
)
def test_workers_end_with_the_program(
    ending: str, signals: signal.Signals | None, jobs: list[Job]
) -> None:
    command = [sys.executable, "-c", SCRIPT + ENDINGS[ending], PACKAGE, *(job.path for job in jobs)]
    # A session of its own, so that Ctrl-C reaches the workers too, as at a terminal.
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as program:
        assert program.stdout
        workers = [int(pid) for pid in program.stdout.readline().split()]
        assert len(workers) == 2
        if signals == signal.SIGINT:
            time.sleep(0.2)
            os.killpg(program.pid, signals)
        elif signals:
            program.send_signal(signals)
        try:
            program.wait(timeout=10)
        except subprocess.TimeoutExpired:
            # Python drops a KeyboardInterrupt that arrives in a weakref callback: press again.
            os.killpg(program.pid, signals or signal.SIGKILL)
            program.wait(timeout=20)
        workers += [int(pid) for pid in program.stdout.read().split()]
        assert program.stderr
        complaints = program.stderr.read().decode()
    assert wait_for(lambda: not any(map(is_alive, workers)))
    if ending == "and goes on":
        assert program.returncode == 0
        assert len(workers) == 4
    elif signals == signal.SIGINT:
        assert program.returncode == -signal.SIGINT
        assert "KeyboardInterrupt" in complaints
    else:
        assert not complaints


@linux_only
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_signals_that_ask_the_program_to_end_leave_the_workers_to_it(
    number: signal.Signals, jobs: list[Job]
) -> None:
    pool = DecodingPool(workers=1)
    before = decoded(pool, jobs)
    (worker,) = pids(pool)
    os.kill(worker, number)
    assert (decoded(pool, jobs) == before).all()
    assert pids(pool) == [worker]
    pool.close()


@linux_only
def test_a_forked_process_decodes_by_itself(jobs: list[Job]) -> None:
    ending = """
child = os.fork()
if not child:
    again = np.empty_like(pixels)
    pool.decode(jobs, again)
    sys.exit(0 if (again == pixels).all() else 1)
assert os.waitpid(child, 0)[1] == 0
pool.decode(jobs, pixels)  # the workers are still there
"""
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT + ending, PACKAGE, jobs[0].path]
    subprocess.run(command, check=True, timeout=60, stdout=subprocess.DEVNULL)
