"""progress=True in Python shows what the command line shows."""

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import datadistill as dd
from datadistill import bars
from datadistill.showing import shown, teller

IMAGES = torch.randn(40, 1, 28, 28, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(40) % 10
DATA = (IMAGES, LABELS)
TINY: dict[str, Any] = {"iterations": 2, "batch_size": 16, "networks": 1, "validation": 0.5}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal that keeps what is drawn."""
    drawn = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(bars.err, "_file", drawn)
    monkeypatch.setattr(bars.err, "_force_terminal", True)
    return drawn


def distill(**more: Any) -> dd.DistilledData:
    return dd.distill(DATA, dd.models.Linear(), **TINY | more)


CALLS: dict[str, tuple[str, Callable[[dd.DistilledData, Path], object]]] = {
    "distill": ("distilling", lambda made, path: distill(progress=True)),
    "run": ("distilling", lambda made, path: distill(progress=True, run=path / "run")),
    "train": ("training", lambda made, path: made.train(progress=True)),
    "evaluate": (
        "evaluating",
        lambda made, path: dd.evaluate(made, DATA, networks=2, progress=True),
    ),
    "curve": (
        "evaluating",
        lambda made, path: dd.learning_curve(made, DATA, networks=2, progress=True),
    ),
    "ordinary": (
        "evaluating",
        lambda made, path: dd.evaluate_ordinary(made, DATA, networks=1, progress=True),
    ),
    "verify": (
        "evaluating",
        lambda made, path: dd.verify(
            made.with_claim(dd.evaluate(made, DATA, networks=2).claim()), DATA, progress=True
        ),
    ),
    "pretrain": (
        "pre-training",
        lambda made, path: dd.pretrain(
            DATA,
            dd.models.Linear(),
            path / "pool",
            networks=1,
            held_out=1,
            epochs=1,
            validation=0.0,
            progress=True,
        ),
    ),
}


@pytest.fixture(scope="module")
def made() -> dd.DistilledData:
    return distill()


@pytest.mark.parametrize("call", CALLS)
def test_a_bar_is_drawn_on_a_terminal(
    call: str, made: dd.DistilledData, terminal: Terminal, tmp_path: Path
) -> None:
    stage, run = CALLS[call]
    run(made, tmp_path)
    assert stage in terminal.getvalue()
    assert "━" in terminal.getvalue()


@pytest.mark.parametrize("call", CALLS)
def test_nothing_but_messages_is_printed_by_a_short_call_without_a_terminal(
    call: str, made: dd.DistilledData, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    CALLS[call][1](made, tmp_path)
    captured = capfd.readouterr()
    assert not captured.out
    assert "━" not in captured.err


@pytest.mark.parametrize("in_folder", [True, False])
def test_the_last_and_the_best_are_told_as_on_the_command_line(
    in_folder: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = {"run": tmp_path / "run"} if in_folder else {}
    made = distill(progress=True, test=DATA, **run)
    said = capfd.readouterr().err
    assert "on held-out data" in said or "Kept the" in said
    assert str(made.claim) in said
    assert made.claim is not None
    assert made.claim.split == "test"
    distill(test=DATA, **run)
    assert not capfd.readouterr().err


def test_a_run_that_is_resumed_draws_and_tells(tmp_path: Path, terminal: Terminal) -> None:
    def stop(progress: dd.Progress) -> None:
        raise KeyboardInterrupt

    settings: dict[str, Any] = {"run": tmp_path / "run", "iterations": 3, "batch_size": 16}
    with pytest.raises(KeyboardInterrupt):
        dd.distill("digits", "linear", progress=stop, **settings)
    resumed = dd.resume(tmp_path / "run", progress=True)
    assert "distilling" in terminal.getvalue()
    assert "Resuming" in terminal.getvalue()
    assert resumed.header.configuration["outer_step"] <= 3


def test_in_a_notebook_without_widgets_lines_are_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bars.err, "is_jupyter", True)
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with shown(True) as show:
        assert isinstance(show, bars.Lines)
    monkeypatch.undo()
    with shown(True) as show:
        assert isinstance(show, bars.Lines)


def test_a_callback_is_used_as_it_is_and_gets_no_messages() -> None:
    seen: list[dd.Progress] = []
    with shown(seen.append) as show:
        show(dd.Progress("a", 1, 2))
    assert len(seen) == 1
    teller(seen.append)("nothing is printed")
    with shown(False) as show:
        show(dd.Progress("a", 1, 2))


def test_rich_is_imported_only_when_something_is_shown() -> None:
    program = "import sys, datadistill; sys.exit('rich.progress' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
