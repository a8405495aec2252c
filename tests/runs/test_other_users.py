"""Other users of the machine: they can connect to a run of several processes, and do no more."""

import base64
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import HashStore  # pyright: ignore[reportPrivateImportUsage]

from datadistill.errors import TeamError
from datadistill.runs.config import RunConfig
from datadistill.runs.experiment import check_named, load
from datadistill.runs.follow import worker
from datadistill.runs.pool_job import PoolJob
from datadistill.runs.store.checkpoint import Checkpoint, to_bytes
from datadistill.runs.team.link import STOP_TIMEOUT
from datadistill.runs.team.mesh import Mesh
from datadistill.runs.team.processes import together
from datadistill.runs.team.secret import ForgedError, Secret
from datadistill.runs.team.signed_store import SignedStore
from tests.runs import attacker
from tests.runs.attacker import listening_sockets
from tests.runs.helpers import RESULTS, arguments_with, finish, start
from tests.runs.test_processes import WORDS, alive, wait_until, workers_of

needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0,
    reason="becomes another user, which only root can: run the tests as root",
)
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/net/tcp")

EVIL = """
import os, pathlib
pathlib.Path({marker!r}).write_text(f"run by user {{os.getuid()}}")

class Evil:
    def __init__(self):
        os._exit(0)
"""


def evil_content(folder: Path) -> tuple[Path, bytes]:
    """A file that is written if the attack succeeds, and the configuration that writes it."""
    marker, module = folder / "marker", folder / "evil.py"
    module.write_text(EVIL.format(marker=str(marker)))
    config = RunConfig(model="linear", networks=2, batch_size=32, test_networks=2, threads=1)
    distillation = load(config).prepare()
    named = replace(distillation.config, model=f"{module}:Evil", processes=2)
    made = Checkpoint(distillation.start(), named, distillation.fingerprint())
    return marker, to_bytes(made)


@contextlib.contextmanager
def attacking(content: bytes) -> Generator[subprocess.Popen[str]]:
    """Another user, who attacks the ports that are written to its input."""
    command = [sys.executable, str(Path(attacker.__file__))]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as other:
        assert other.stdout
        try:
            tell(other, base64.b64encode(content).decode())
            assert other.stdout.readline() == "ready\n"
            yield other
        finally:
            other.kill()


def tell(other: subprocess.Popen[str], line: object) -> None:
    assert other.stdin
    print(line, file=other.stdin, flush=True)


@linux_only
@needs_root
def test_no_other_user_makes_a_worker_run_code(tmp_path: Path) -> None:
    marker, content = evil_content(tmp_path)
    before = listening_sockets(os.getpid())

    def attacked() -> None:
        with attacking(content) as other, together(2, worker) as team:
            ((_, port),) = listening_sockets(os.getpid()) - before
            tell(other, port)
            assert other.stdout
            assert other.stdout.readline() == "written\n"
            wait_until(lambda: marker.exists() or not workers_of(os.getpid()))
            assert not marker.exists()
            team.sync()

    with pytest.raises(TeamError, match="does not prove the secret of this run"):
        attacked()
    assert workers_of(os.getpid()) == []


@pytest.mark.slow
@linux_only
@needs_root
def test_a_run_that_another_user_disturbs_ends_alike_or_with_a_typed_error(tmp_path: Path) -> None:
    data = tmp_path / "data.npz"
    arguments_with(data)
    words = ["distill", "--data", str(data), *WORDS, "--iterations", "30", "--processes", "2"]
    marker, content = evil_content(tmp_path)
    with attacking(content) as other:
        process, attacked = start(*words, "--run", str(tmp_path / "run")), set[int]()
        while process.poll() is None:
            for port in ports_of([process.pid, *workers_of(process.pid)]) - attacked:
                attacked.add(port)
                tell(other, port)
        code, said = finish(process)
    assert attacked
    assert not marker.exists()
    assert "Traceback" not in said
    if code == 0:
        assert finish(start(*words, "--run", str(tmp_path / "whole")))[0] == 0
        whole, run = tmp_path / "whole", tmp_path / "run"
        assert all((run / n).read_bytes() == (whole / n).read_bytes() for n in RESULTS)
    else:
        assert code == 1
        assert said.startswith("error: ")
        assert len(said.strip().splitlines()) == 2, said


@linux_only
@needs_root
@pytest.mark.parametrize("sees", ["the signal first", "the message first"])
def test_a_worker_that_gets_a_forged_message_ends_on_sigterm(sees: str, tmp_path: Path) -> None:
    marker, content = evil_content(tmp_path)
    before = listening_sockets(os.getpid())

    def attacked() -> None:
        with attacking(content) as other, together(2, worker) as team:
            ((_, port),) = listening_sockets(os.getpid()) - before
            (victim,) = workers_of(os.getpid())
            if sees == "the signal first":
                os.kill(victim, signal.SIGSTOP)
            tell(other, port)
            assert other.stdout
            assert other.stdout.readline() == "written\n"
            with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                os.kill(victim, signal.SIGTERM)
                os.kill(victim, signal.SIGCONT)
            wait_until(lambda: not workers_of(os.getpid()), seconds=10)
            assert not marker.exists()
            team.sync()

    with pytest.raises(TeamError):
        attacked()


@linux_only
@needs_root
def test_a_run_that_gets_forged_messages_ends_on_sigterm_though_its_worker_hangs(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data.npz"
    arguments_with(data)
    words = ["distill", "--data", str(data), *WORDS, "--iterations", "2000", "--processes", "2"]
    marker, content = evil_content(tmp_path)
    with attacking(content) as other, start(*words, "--run", str(tmp_path / "run")) as process:
        wait_until(lambda: workers_of(process.pid) and ports_of([process.pid]))
        (hanging,) = workers_of(process.pid)
        os.kill(hanging, signal.SIGSTOP)
        tell(other, ports_of([process.pid]).pop())
        assert other.stdout
        assert other.stdout.readline() == "written\n"
        process.send_signal(signal.SIGTERM)
        begin = time.monotonic()
        code, said = finish(process)
    assert time.monotonic() - begin < 3 * STOP_TIMEOUT
    assert code in (1, 75), said
    assert "Traceback" not in said
    assert not alive(hanging)
    assert not marker.exists()


def ports_of(pids: list[int]) -> set[int]:
    found = set[int]()
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            found |= {port for _, port in listening_sockets(pid)}
    return found


@pytest.mark.parametrize(
    "attack", ["unsigned", "another name", "another run", "another key", "changed"]
)
def test_a_message_that_does_not_prove_the_secret_is_refused(attack: str) -> None:
    inner: Any = HashStore()
    store = SignedStore(inner, Secret(b"key"))
    store.set("over", "yes")
    assert store.get("over") == b"yes"
    assert store.check(["over"])
    signed = inner.get("over")
    if attack == "unsigned":
        inner.set("begun", b"yes")
    elif attack == "another name":
        inner.set("begun", signed)
    elif attack == "another run":
        SignedStore(inner, Secret(b"key", run="earlier")).set("begun", "yes")
    elif attack == "another key":
        SignedStore(inner, Secret(b"")).set("begun", "yes")
    else:
        store.set("begun", "yes")
        inner.set("begun", inner.get("begun")[:-1] + b"S")
    for look in (lambda: store.get("begun"), lambda: store.check(["over", "begun"])):
        with pytest.raises(ForgedError, match="'begun' does not prove the secret of this run"):
            look()


def test_code_that_the_command_line_does_not_name_is_not_imported() -> None:
    config = RunConfig(model="os:system")
    for named in ({}, {"model": "linear"}, {"data": "os:system"}):
        with pytest.raises(TeamError, match="this process was not told of: os:system"):
            check_named(config, named)
    check_named(config, {"model": "os:system"})
    job = PoolJob(data="digits", model="os:system", pool=Path("pool"))
    with pytest.raises(TeamError, match="same --model"):
        check_named(job, {"model": "lenet", "data": "digits"})
    check_named(job, job.named)


class Done:
    """A collective that has ended."""

    def is_completed(self) -> bool:
        return True

    def wait(self) -> None: ...


@pytest.mark.parametrize("other", ["honest", "silent", "mirror", "of another run"])
def test_a_connection_that_does_not_prove_the_secret_is_refused(
    other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent_by: dict[int, Tensor] = {}

    def met(rank: int, secret: Secret, reply: Callable[[], Tensor]) -> None:
        """One of two processes, and what it receives: its own proof, and that of the other."""

        def exchange(received: Tensor, sent: Tensor, *, async_op: bool) -> Done:
            assert async_op
            sent_by[rank] = sent.clone().view(2, -1)
            received.view(2, -1)[rank] = sent_by[rank][rank]
            received.view(2, -1)[1 - rank] = reply()
            return Done()

        monkeypatch.setattr(dist, "init_process_group", lambda *_, **__: None)  # pyright: ignore[reportUnknownArgumentType, reportUnknownLambdaType]
        monkeypatch.setattr(dist, "all_to_all_single", exchange)
        Mesh(SignedStore(HashStore(), secret), rank, 2, secret).connect(lambda: None)

    zeros = torch.zeros(32, dtype=torch.uint8)
    for key in (b"another", b"key"):
        with contextlib.suppress(ForgedError):  # only what process 1 sends is of interest
            met(1, Secret(key), lambda: zeros)
        if other == "of another run":
            break
    replies = {"silent": lambda: zeros, "mirror": lambda: sent_by[0][1]}
    reply = replies.get(other, lambda: sent_by[1][0])
    if other == "honest":
        met(0, Secret(b"key"), reply)
        return
    with pytest.raises(ForgedError, match="connection with process 1 does not prove the secret"):
        met(0, Secret(b"key"), reply)
