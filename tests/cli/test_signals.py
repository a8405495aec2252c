"""Signals that ask a command to end: its exit code, and who else may handle them."""

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import pytest

from datadistill.cli import main as main_module
from datadistill.cli.console import going_on
from datadistill.cli.main import main
from datadistill.runs.store.checkpoint import newest
from datadistill.runs.store.folder import RunFolder
from datadistill.runs.team.signals import Terminated
from datadistill.runs.team.stop import stoppable
from tests.runs.helpers import arguments_with

ON_A_TERMINAL = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from datadistill.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@dataclass
class Command:
    """A command that does one thing."""

    run: Callable[[], None]


def ended(do: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit code of a command that does this."""
    monkeypatch.setattr(main_module, "parse", lambda _words: Command(do))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    return main(["evaluate"])


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 75), (signal.SIGHUP, 75), (signal.SIGUSR1, 75)],
)
def test_every_command_ends_with_a_code_that_tells_who_ended_it(
    number: signal.Signals,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = signal.getsignal(number)

    def receive() -> None:
        with going_on():
            os.kill(os.getpid(), number)
            time.sleep(5)

    assert ended(receive, monkeypatch) == code
    assert capsys.readouterr().err == "Interrupted; run the same command to continue.\n"
    assert signal.getsignal(number) == before


def test_a_second_signal_ends_a_command_that_hangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def hang() -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        finally:
            assert signal.getsignal(signal.SIGINT) == signal.SIG_DFL

    assert ended(hang, monkeypatch) == 130


def test_nohup_and_a_users_own_handler_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[int] = []

    def own(number: int, _frame: FrameType | None) -> None:
        heard.append(number)

    def send() -> None:
        with stoppable(lambda _text: None) as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            os.kill(os.getpid(), signal.SIGUSR1)
            assert not stop.requested

    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGUSR1, own)
    try:
        assert ended(send, monkeypatch) == 0
    finally:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    assert heard == [signal.SIGUSR1]


def test_a_warning_that_is_repeated_does_not_quit_and_sigterm_then_does() -> None:
    told: list[str] = []
    with stoppable(told.append) as stop:
        for number in (signal.SIGUSR1, signal.SIGUSR1, signal.SIGHUP):
            os.kill(os.getpid(), number)
        assert stop.signal == signal.SIGUSR1
        assert len(told) == 1
        with pytest.raises(Terminated):
            signal.raise_signal(signal.SIGTERM)


def test_a_run_whose_terminal_is_closed_saves_and_ends(tmp_path: Path) -> None:
    run = tmp_path / "run"
    arguments = [*arguments_with(tmp_path / "data.npz"), "--iterations", "1000000"]
    words = ["distill", *(word for word in arguments if word != "--quiet"), "--run", str(run)]
    master, terminal = pty.openpty()
    # Not a fork of another process: that would keep the terminal open.
    process = subprocess.Popen(
        [sys.executable, "-c", ON_A_TERMINAL, *words],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
    )
    os.close(terminal)
    log = RunFolder(run).metrics
    while not log.exists() or log.read_bytes().count(b"\n") < 5:
        assert process.poll() is None
        os.read(master, 4096)
    os.close(master)
    assert process.wait(timeout=60) == 75
    assert newest(RunFolder(run).checkpoints)[0].state.outer_step >= 5
    assert len(log.read_bytes().splitlines()) == newest(run / "checkpoints")[0].state.outer_step
