"""Real processes that need not import torch again, which takes seconds.

A server that has imported everything is started once; each process is a fork of it. It has its own
number, working directory, environment and signals as any other, and runs ``python -m datadistill``
or a program. Where this is not possible, or the start itself matters, use ``subprocess``.
"""

import functools
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, NoReturn

FORKS = sys.platform == "linux"
LATER = (
    *("matplotlib.backends.backend_agg", "matplotlib.figure", "mpl_toolkits.mplot3d"),
    *("sklearn.datasets", "torch.fx.experimental.symbolic_shapes", "tyro._backends._tyro_backend"),
    *("tyro.constructors", "typeguard"),
)
"""What commands import only when they come to use it; together it takes a second."""
_ONE_REQUEST = threading.Lock()  # threads start processes, too


def python(*arguments: str | Path, **options: Any) -> subprocess.Popen[str]:
    """Starts ``python`` with these arguments: ``-m datadistill …`` or ``-c program …``.

    Args:
        arguments: As on a command line.
        options: As for ``Popen``; output is piped unless they say otherwise.
    """
    given: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    kind = _Forked if FORKS else subprocess.Popen[str]
    return kind([sys.executable, *map(str, arguments)], text=True, **given)


def finished(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Starts a process as :func:`python` does, and waits for its end."""
    process = python(*arguments, **options)
    said, complained = process.communicate(timeout=300)
    return subprocess.CompletedProcess(process.args, process.returncode, said, complained)


def worker(arguments: list[str], **options: Any) -> subprocess.Popen[bytes]:
    """Starts a worker of a run as ``Popen`` does; it does not import torch again either."""
    kind = _Forked if FORKS else subprocess.Popen
    return kind(arguments, **options)  # pyright: ignore[reportReturnType]


class _Forked(subprocess.Popen[str]):
    """A fork of the server, whose parent tells its number and how it ended through a pipe."""

    def _execute_child(self, args: list[str], *given: Any) -> None:
        """Has the server start the process; the arguments are those of :mod:`subprocess`."""
        names = [
            *("executable", "preexec_fn", "close_fds", "pass_fds", "cwd", "env", "startupinfo"),
            *("creationflags", "shell", "stdin", "to_stdin", "from_stdout", "stdout"),
            *("from_stderr", "stderr", "restore_signals", "gid", "gids", "uid", "umask"),
            "start_new_session",
        ]
        options = dict(zip(names, given, strict=False))
        streams = [options[name] for name in ("stdin", "stdout", "stderr")]
        used = [own if fd == -1 else fd for own, fd in enumerate(streams)]
        self._told, telling = os.pipe()
        request = {
            "arguments": args[1:],
            "cwd": str(options["cwd"] or Path.cwd()),
            "env": dict(os.environ if options["env"] is None else options["env"]),
            "new_session": bool(options["start_new_session"]),
        }
        content = json.dumps(request).encode()
        with _ONE_REQUEST:
            server, _ = _server()
            socket.send_fds(server, [len(content).to_bytes(4, "big")], [*used, telling])
            server.sendall(content)
        os.close(telling)
        self._close_pipe_fds(*given[9:15])  # pyright: ignore[reportAttributeAccessIssue]
        self.pid, self._child_created = self._number(), True

    def _internal_poll(self, *_: object, **__: object) -> int | None:
        return self.returncode if self._ended(0) else None

    def _wait(self, timeout: float | None) -> int:
        if not self._ended(timeout if timeout is None else max(0, timeout)):
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return self.returncode

    def _ended(self, timeout: float | None) -> bool:
        """Waits for the end of the process, at most so long."""
        if self.returncode is None and select.select([self._told], [], [], timeout)[0]:
            self.returncode = os.waitstatus_to_exitcode(self._number())
            os.close(self._told)
        return self.returncode is not None

    def _number(self) -> int:
        found = os.read(self._told, 4)
        assert found, "the server has ended"
        return int.from_bytes(found, "big")


@functools.cache
def _server() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """Where requests go, and the process that serves them until this one ends."""
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-m", __name__, str(theirs.fileno())]
    root = Path(__file__).parents[1]
    process = subprocess.Popen(
        command, cwd=root, pass_fds=[theirs.fileno()], start_new_session=True
    )
    theirs.close()
    return ours, process


def _serve(requests: socket.socket) -> None:
    """Starts processes until the other end is closed."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # parents are not waited for
    while True:
        size, fds, *_ = socket.recv_fds(requests, 4, 4)
        if not size:
            return
        request = json.loads(_received(requests, int.from_bytes(size, "big")))
        if not os.fork():
            requests.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _be_parent(request, fds)
        for fd in fds:
            os.close(fd)


def _received(requests: socket.socket, size: int) -> bytes:
    content = b""
    while len(content) < size:
        content += requests.recv(size - len(content))
    return content


def _be_parent(request: dict[str, Any], fds: list[int]) -> NoReturn:
    """Forks the process, and tells its number and how it ended."""
    *streams, telling = fds
    pid = os.fork()
    if not pid:
        os.close(telling)
        _be_process(request, streams)
    for fd in streams:
        os.close(fd)
    try:
        os.write(telling, pid.to_bytes(4, "big"))
        os.write(telling, os.waitpid(pid, 0)[1].to_bytes(4, "big"))
    finally:
        os._exit(0)


def _be_process(request: dict[str, Any], streams: list[int]) -> None:
    """Becomes what was asked for."""
    for own, fd in enumerate(streams):
        os.dup2(fd, own)
        os.close(fd)
    if request["new_session"]:
        os.setsid()
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    how, what, *arguments = [word for word in request["arguments"] if word != "-P"]
    sys.argv, sys.path[0] = [what, *arguments], ""
    raise _Program(how, what)


class _Program(Exception):  # noqa: N818 (nothing has gone wrong)
    """Leaves the server's code, so that nothing of it is on the stack of the process."""


if __name__ == "__main__":
    package = importlib.import_module("datadistill")
    found = pkgutil.walk_packages(package.__path__, "datadistill.")
    own = [module.name for module in found if not module.name.endswith("__main__")]
    for name in (*LATER, *own):
        importlib.import_module(name)
    importlib.import_module("PIL.Image").preinit()
    rendering = importlib.import_module("datadistill.report.rendering")
    rendering._environment().get_template("report.html")  # compiled once
    gc.freeze()  # processes need not look through all this for garbage, nor copy it: a second each
    try:
        _serve(socket.socket(fileno=int(sys.argv[1])))
        sys.exit()
    except _Program as program:
        how, what = program.args
    if how == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        sys.argv[0] = "-c"
        exec(what, {"__name__": "__main__"})
