"""Runs in several real processes: the same result as one, and an orderly end whatever happens."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
import torch

import datadistill as dd
from datadistill.cli.main import main
from datadistill.engine.team import ALONE
from datadistill.errors import ConfigError
from datadistill.runs.config import RunConfig
from datadistill.runs.experiment import load
from datadistill.runs.follow import signals_as_votes, worker
from datadistill.runs.planning.budget import TimeBudget
from datadistill.runs.preparation import computed_by
from datadistill.runs.run import Run
from datadistill.runs.store.checkpoint import Checkpoint, newest, to_bytes
from datadistill.runs.store.folder import RunFolder
from datadistill.runs.store.metrics import read_metrics
from datadistill.runs.store.yaml_files import read_config
from datadistill.runs.team.link import STOP_TIMEOUT
from datadistill.runs.team.processes import Processes, Votes, together
from tests.helpers import engine_to_ask_for, relative_error
from tests.runs.attacker import LOOPBACK, listening_sockets
from tests.runs.helpers import DATA, arguments_with, finish, start

Started = tuple[subprocess.Popen[str], int, Path]

WORDS = [
    *("--quiet", "--model", "linear", "--networks", "3", "--steps", "2", "--epochs", "2"),
    *("--batch-size", "32", "--outer-lr", "0.1", "--learning-rate", "0.3", "--threads", "1"),
    *("--validate-every", "10", "--test-networks", "3", "--keep", "best"),
]


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A quick run of random initialization; data without a picture."""
    data = tmp_path_factory.mktemp("data") / "data.npz"
    arguments_with(data)
    return ["distill", "--data", str(data), *WORDS]


def wait_until(holds: Callable[[], object], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def reached(run: Path, outer_step: int) -> bool:
    log = RunFolder(run).metrics
    return log.exists() and len(log.read_bytes().splitlines()) >= outer_step


def workers_of(pid: int) -> list[int]:
    """The workers that a process has started, from the system's own list."""
    command = ["ps", "-A", "-ww", "-o", "pid=,ppid=,args="]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = [line.split(maxsplit=2) for line in listed.stdout.splitlines()]
    return [int(own) for own, parent, said in rows if int(parent) == pid and "runs.follow" in said]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def meanwhile(do: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=do)
    thread.start()
    return thread


def test_the_gradient_over_gloo_is_that_of_one_process() -> None:
    config = RunConfig(model="linear", networks=3, batch_size=64, dtype="float64", threads=1)
    with contextlib.suppress(KeyboardInterrupt), together(2, worker) as team:
        distillation = load(config).prepare(team)
        distiller, state = distillation.distiller, distillation.start()
        prints = distillation.fingerprint()
        team.begin(lambda: to_bytes(Checkpoint(state, distillation.config, prints)))
        batch = distillation.batch(0)
        losses, gradient = distiller.gradient(state.distiller, batch)
        alone = computed_by(distillation, ALONE)
        expected_losses, expected = alone.gradient(state.distiller, batch)
        assert relative_error(losses, expected_losses) < 1e-12
        for name in expected:
            assert relative_error(gradient[name], expected[name]) < 1e-12
        raise KeyboardInterrupt  # the other process wants to go on
    assert workers_of(os.getpid()) == []


@pytest.mark.usefixtures("forked_workers")
def test_two_processes_make_the_run_of_one_and_one_goes_on_with_it(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    assert main([*words, "--iterations", "20", "--run", str(one)]) == 0
    assert main([*words, "--iterations", "20", "--run", str(two), "--processes", "2"]) == 0
    assert "processes: 2\n" in RunFolder(two).config.read_text()
    assert main(["resume", str(one), "--iterations", "25"]) == 0
    capsys.readouterr()
    assert main(["resume", str(two), "--iterations", "25", "--processes", "1"]) == 0
    told = capsys.readouterr().err
    assert "may change the last bits of the result: processes: 2 → 1.\nTo compute as before" in told
    engine = engine_to_ask_for()
    assert f"datadistill resume {two} --engine {engine} --threads 1 --processes 2\n" in told
    left, right = (dd.load(RunFolder(run).distilled) for run in (one, two))
    assert relative_error(right.inputs, left.inputs) < 1e-5
    assert right.claim == left.claim
    assert right.header.configuration == left.header.configuration
    for a, b in zip(*(read_metrics(RunFolder(run).metrics) for run in (one, two)), strict=True):
        assert b.loss == pytest.approx(a.loss, rel=1e-5)
        assert b.gradient_norm == pytest.approx(a.gradient_norm, rel=1e-5)
        assert b.held_out == a.held_out


@pytest.mark.usefixtures("forked_workers")
def test_a_run_whose_time_is_up_ends_in_all_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if an earlier group of this process could not be connected.
    monkeypatch.setattr(torch.distributed.distributed_c10d._world, "group_count", 3)  # pyright: ignore[reportPrivateUsage]
    config = RunConfig(model="linear", networks=2, batch_size=32, test_networks=2, threads=1)
    with together(2, worker) as team:
        found, folder = load(config), RunFolder(tmp_path / "run")
        made = Run(found.prepare(team), folder, found.test, TimeBudget(time.monotonic())).go()
    assert made.header.configuration["iterations"] == 1
    assert made.claim is not None
    assert made.claim.networks == 2


@pytest.mark.usefixtures("forked_workers")
def test_a_schedule_that_is_planned_again_is_the_same_in_all_processes(tmp_path: Path) -> None:
    config = RunConfig(
        model="linear", networks=2, batch_size=32, test_networks=2, threads=1, iterations=400
    )
    with together(2, worker) as team:
        found, folder = load(config), RunFolder(tmp_path / "run")
        budget = TimeBudget(time.monotonic() + 60, at_most=60)
        Run(found.prepare(team), folder, found.test, budget).go()
    ended = read_config(folder.config)
    assert (ended.iterations, ended.plans) == (60, ((0, 400), (40, 60)))
    with together(2, worker) as team:
        again = RunFolder(tmp_path / "again")
        found = load(ended)
        Run(found.prepare(team), again, found.test).go()
    assert again.distilled.read_bytes() == folder.distilled.read_bytes()


def test_torchruns_variables_make_a_team_of_two_commands(words: list[str], tmp_path: Path) -> None:
    run, port = tmp_path / "run", str(free_port())

    def command(rank: int) -> subprocess.Popen[str]:
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2"}
        place |= {"DATADISTILL_SECRET": "of this run"}
        variables = place | {"RANK": str(rank), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "2"}
        return start(*words, "--iterations", "20", "--run", str(run), variables=variables)

    ended = [finish(process) for process in [command(0), command(1)]]
    assert [code for code, _ in ended] == [0, 0], ended
    assert "over 3 networks" in ended[0][1]
    assert ended[1][1] == ""
    assert "processes: 2\n" in RunFolder(run).config.read_text()


def test_a_killed_process_ends_the_run_with_all_that_was_done(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, killed_at = tmp_path / "run", 0.0

    def kill() -> None:
        nonlocal killed_at
        wait_until(lambda: reached(run, 5))
        killed_at = time.monotonic()
        os.kill(workers_of(os.getpid())[0], signal.SIGKILL)

    thread = meanwhile(kill)
    assert main([*words, "--iterations", "2000", "--run", str(run), "--processes", "2"]) == 1
    assert time.monotonic() - killed_at < 10
    thread.join()
    said = capsys.readouterr().err
    found, _ = newest(RunFolder(run).checkpoints)
    assert found.state.outer_step == len(read_metrics(RunFolder(run).metrics)) >= 5
    assert "Process 1 of 2 was killed by SIGKILL." in said
    assert f"Outer step {found.state.outer_step:,} is saved." in said
    assert f"To resume: datadistill resume {run}" in said
    assert len(said.strip().splitlines()) == 2


def test_what_another_process_fails_of_is_told(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "own_net.py"
    own.write_text(
        "import os, torch.nn as nn\n\n\nclass Mine(nn.Sequential):\n"
        "    def __init__(self):\n        super().__init__(nn.Flatten(), nn.Linear(98, 10))\n"
        "        assert 'RANK' not in os.environ, 'this machine is too small'\n"
    )
    given = ["--model", f"{own}:Mine", "--run", str(tmp_path / "run"), "--processes", "2"]
    assert main([*words, *given]) == 1
    said = capsys.readouterr().err
    assert "Process 1 of 2 failed: " in said
    assert "this machine is too small" in said


def test_a_process_that_does_not_answer_ends_the_run(
    words: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DATADISTILL_TIMEOUT", "3")
    run = tmp_path / "run"

    def halt() -> None:
        wait_until(lambda: reached(run, 2))
        os.kill(workers_of(os.getpid())[0], signal.SIGSTOP)

    thread = meanwhile(halt)
    assert main([*words, "--iterations", "2000", "--run", str(run), "--processes", "2"]) == 1
    thread.join()
    assert "Another process has ended or does not respond" in capsys.readouterr().err
    assert workers_of(os.getpid()) == []
    found, _ = newest(RunFolder(run).checkpoints)
    assert found.state.outer_step >= 2


@pytest.fixture
def started(words: list[str], tmp_path: Path) -> Generator[Started]:
    """A run in two processes that is going on: process 0, the other one's number, the folder."""
    run = tmp_path / "run"
    process = start(
        *[*words, "--iterations", "2000", "--run", str(run), "--processes", "2"],
        start_new_session=True,
    )
    wait_until(lambda: reached(run, 5) or process.poll() is not None)
    assert process.poll() is None, finish(process)
    (other,) = workers_of(process.pid)
    yield process, other, run
    process.kill()


def test_ctrl_c_reaches_all_and_stops_once(started: Started) -> None:
    process, other, run = started
    os.killpg(process.pid, signal.SIGINT)
    code, said = finish(process)
    assert code == 130
    assert said.count("Stopping after this outer step.") == 1
    outer_step = newest(RunFolder(run).checkpoints)[0].state.outer_step
    assert said.count(f"Interrupted; outer step {outer_step:,} is saved.") == 1
    assert len(said.strip().splitlines()) == 3, said
    assert outer_step == len(read_metrics(RunFolder(run).metrics))
    assert not alive(other)


def test_a_run_listens_to_this_machine_only_and_ends_by_two_ctrl_c_though_its_worker_hangs(
    started: Started,
) -> None:
    process, other, run = started
    if sys.platform == "linux":
        found = [one for pid in (process.pid, other) for one in listening_sockets(pid)]
        assert len(found) >= 3  # the store, and gloo of each
        assert {address for address, _ in found} <= LOOPBACK
    os.kill(other, signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    while "Press Ctrl-C again to quit now." not in process.stderr.readline():
        assert process.poll() is None
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    code, said = finish(process)
    assert time.monotonic() - begin < 3 * STOP_TIMEOUT  # of the 600 s that torch would wait
    assert code == 130, said
    assert f"will be repeated.\nTo resume: datadistill resume {run}" in said
    assert "Traceback" not in said
    assert not alive(other)


def test_one_signal_ends_a_run_whose_worker_hangs_in_reasonable_time(started: Started) -> None:
    process, other, run = started
    os.kill(other, signal.SIGSTOP)
    process.send_signal(signal.SIGTERM)
    begin = time.monotonic()
    code, said = finish(process)
    assert time.monotonic() - begin < 3 * STOP_TIMEOUT
    assert code == 75
    outer_step = newest(RunFolder(run).checkpoints)[0].state.outer_step
    assert f"outer step {outer_step:,} is saved." in said
    assert outer_step == len(read_metrics(RunFolder(run).metrics)) >= 5
    assert not alive(other)


def test_a_signal_ends_a_run_whose_worker_is_never_ready(words: list[str], tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = start(*words, "--run", str(run), "--processes", "2")
    wait_until(lambda: workers_of(process.pid))
    (other,) = workers_of(process.pid)
    os.kill(other, signal.SIGSTOP)
    wait_until(RunFolder(run).config.exists)
    process.send_signal(signal.SIGUSR1)
    begin = time.monotonic()
    code, said = finish(process)
    assert time.monotonic() - begin < 3 * STOP_TIMEOUT
    assert code == 75, said
    assert "Interrupted; outer step 0 is saved." in said
    assert not alive(other)


def test_a_worker_votes_on_sigterm_and_a_second_one_kills_it() -> None:
    team = Processes()
    before = signal.getsignal(signal.SIGTERM)
    with signals_as_votes(team):
        signal.raise_signal(signal.SIGUSR1)  # left to process 0
        assert team.vote() == Votes()
        signal.raise_signal(signal.SIGTERM)
        assert team.vote() == Votes(stop=True)
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) == before


def test_where_process_0_is_killed_the_other_ends_and_the_run_goes_on(started: Started) -> None:
    process, other, run = started
    process.kill()
    _, said = finish(process)
    assert said == ""
    wait_until(lambda: not alive(other), seconds=5)
    outer_step = newest(RunFolder(run).checkpoints)[0].state.outer_step
    end = ["--iterations", str(outer_step + 1), "--processes", "1"]
    assert main(["resume", str(run), "--quiet", *end]) == 0


SLOW = """
import os, sys, time
if "RANK" in os.environ:
    sys.stderr.write(f"{os.getpid()}\\n")
    time.sleep(600)

def worker(line):
    pass
"""
LAUNCHES = """
import time, slow
from datadistill.runs.team.handover import Handover
from datadistill.runs.team.launch import Workers
workers = Workers(2, 1, slow.worker, Handover(b"", {}), debug=True)
time.sleep(600)
"""


def test_a_worker_that_is_still_importing_ends_with_process_0(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    process = subprocess.Popen(
        [sys.executable, "-c", LAUNCHES],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stderr
        told = process.stderr.readline()
        process.kill()
    other = int(told)
    try:
        wait_until(lambda: not alive(other), seconds=20)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(other, signal.SIGKILL)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--processes", "0"], "processes is 0."),
        (["--processes", "4"], "3 networks per outer step cannot be divided among 4 processes."),
        (["--processes", "3", "--networks", "2"], "Set networks to 3 or more, or processes to 2"),
    ],
)
def test_processes_that_cannot_be_are_refused_before_any_is_started(
    words: list[str], given: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--run", "never", *given]) == 2
    assert message in capsys.readouterr().err
    assert not Path("never").exists()


def test_python_is_one_process() -> None:
    with pytest.raises(ConfigError, match="a call in Python is one process"):
        dd.distill(DATA, dd.models.Linear(), processes=2)


@pytest.mark.parametrize(
    ("changed", "command", "message"),
    [
        ({}, "quickstart", "datadistill quickstart runs in one process."),
        ({"WORLD_SIZE": "two"}, "distill", "The environment variable WORLD_SIZE is 'two'."),
        ({"MASTER_PORT": ""}, "distill", "Process 0 cannot connect to the others"),
    ],
)
def test_variables_of_torchrun_that_make_no_sense_are_told(
    changed: dict[str, str],
    command: str,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1", "WORLD_SIZE": "2", "RANK": "0"}
    for name, value in (place | changed).items():
        monkeypatch.setenv(name, value)
    assert main([command]) != 0
    assert message in capsys.readouterr().err
