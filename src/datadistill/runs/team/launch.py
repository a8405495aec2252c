"""Starting the workers of a run on this machine, and making sure that they end with it."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from datetime import timedelta
from typing import IO

from torch.distributed import TCPStore  # pyright: ignore[reportPrivateImportUsage]

from .handover import Handover, Named
from .link import Link, Others
from .secret import Secret, new_key

HOST = "127.0.0.1"
PROGRAM = """
import os, signal, threading

def end_with_process_0():  # which holds the other end of the pipe
    os.read(0, 1)
    os._exit(1)

for name in ("SIGINT", "SIGHUP", "SIGUSR1"):  # they reach process 0, which tells the others
    if hasattr(signal, name):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
line = b""
while not line.endswith(b"\\n"):
    line += os.read(0, 1) or os._exit(1)
threading.Thread(target=end_with_process_0, daemon=True).start()
from {module} import {name}
{name}(line)
"""
"""Imports come last: they take seconds, in which process 0 may end."""
INTERFACES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")

Worker = Callable[[bytes], None]
"""What a worker runs: a function of some module, which the new process imports by its name.
It gets the line of the :class:`Handover`."""


class Workers(Others):
    """The processes 1 to N − 1, started by process 0.

    Each holds the end of a pipe, from which it reads what it must know. When process 0 ends,
    however it ends, they read that too, and end.

    Args:
        size: N.
        port: Where process 0 keeps messages.
        worker: What they run.
        handover: What they must know.
        debug: Whether what they print is shown.
    """

    def __init__(
        self, size: int, port: int, worker: Worker, handover: Handover, *, debug: bool
    ) -> None:
        program = PROGRAM.format(module=worker.__module__, name=worker.__name__)
        self._size = size
        self._logs: list[IO[bytes]] = []
        self._processes: list[subprocess.Popen[bytes]] = []
        for rank in range(1, size):
            log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
            self._logs.append(log)
            process = subprocess.Popen(
                # -P: what lies in the working directory, which may be anybody's, is not imported.
                [sys.executable, "-P", "-c", program, *(["--debug"] if debug else [])],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=None if debug else log,
                env=os.environ | _variables(rank, size, port),
            )
            self._processes.append(process)
            assert process.stdin
            with contextlib.suppress(BrokenPipeError):  # it has ended, which will be seen
                handover.write(process.stdin)

    def ended(self) -> str | None:
        """Which worker has ended and how, if one has."""
        for rank, process in enumerate(self._processes, start=1):
            if (code := process.poll()) is not None:
                return f"Process {rank} of {self._size} {self._how(rank, code)}"
        return None

    def close(self) -> None:
        """Kills those that are still running: they hold nothing that could be lost."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
            if process.stdin:
                process.stdin.close()
        for log in self._logs:
            log.close()

    def _how(self, rank: int, code: int) -> str:
        if code < 0:
            return f"was killed by {signal.Signals(-code).name}."
        log = self._logs[rank - 1]
        log.seek(0)
        lines = log.read()[-2000:].decode(errors="replace").strip().splitlines()
        return f"exited with code {code}{': ' + lines[-1] if lines else '.'}"


@contextlib.contextmanager
def launched(size: int, worker: Worker, named: Named, *, debug: bool = False) -> Generator[Link]:
    """Starts processes 1 to N − 1 on this machine; this one is process 0.

    Args:
        size: N.
        worker: What they run.
        named: The Python code that the user has named, which they may import.
        debug: Whether what they print is shown.
    """
    key = new_key()
    with _by_loopback():
        store = _store()
        workers = Workers(size, store.port, worker, Handover(key, named), debug=debug)
        try:
            with Link(store, 0, size, Secret(key), workers).joined() as link:
                yield link
        finally:
            workers.close()


def _store() -> TCPStore:
    """A store for messages that only this machine can connect to; torch's own listens to all."""
    listener = socket.create_server((HOST, 0), backlog=1024)
    return TCPStore(
        HOST,
        listener.getsockname()[1],
        None,
        is_master=True,
        timeout=timedelta(minutes=1),
        wait_for_workers=False,
        master_listen_fd=listener.detach(),
    )


def _variables(rank: int, size: int, port: int) -> dict[str, str]:
    """What torchrun would set, and where this process finds its modules."""
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(size),
        "MASTER_ADDR": HOST,
        "MASTER_PORT": str(port),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }


@contextlib.contextmanager
def _by_loopback() -> Generator[None]:
    """Lets gloo and NCCL talk inside this machine only, unless the user says otherwise."""
    found = [there for _, there in socket.if_nameindex() if there in ("lo", "lo0")]
    missing = [name for name in INTERFACES if name not in os.environ and found]
    os.environ.update(dict.fromkeys(missing, *found[:1]))
    try:
        yield
    finally:
        for name in missing:
            del os.environ[name]
