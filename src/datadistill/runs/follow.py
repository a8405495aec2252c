"""A worker of a run: it computes its share of the work, and neither writes nor prints."""

import contextlib
import signal
import threading
from collections.abc import Generator
from dataclasses import replace
from types import FrameType

from ..engine import using
from ..progress import silent
from . import experiment
from .distillation import Distillation
from .interrupt import check_no_stop
from .outcome import Outcome
from .state import RunState
from .store.checkpoint import from_bytes
from .store.fingerprint import check_fingerprint
from .team.processes import Processes, Votes, together
from .team.worker import run_worker


def follow(team: Processes) -> None:
    """Takes part in the run that process 0 begins, if it begins one."""
    assert team.link is not None
    content = team.link.receive()
    if content is None:
        return
    sent = from_bytes(content)
    loaded = experiment.load(sent.config)
    distillation = loaded.prepare(team)
    prints = distillation.fingerprint(sent.fingerprint)
    check_fingerprint(sent.fingerprint, prints)
    team.link.ready()
    with _signals_as_votes(team), using(distillation.config.engine):
        state = sent.state.to(distillation.distiller.network.device)
        distillation, state = _proceed(distillation, state)
        Outcome.of(distillation, state, loaded.test, silent)


def follow_torchrun() -> None:
    """Takes part as a process that torchrun has started; process 0 sends all it needs."""
    with together() as team:
        follow(team)


def worker() -> None:
    """Takes part as a process that :mod:`.team.launch` has started."""
    run_worker(follow)


def _proceed(distillation: Distillation, state: RunState) -> tuple[Distillation, RunState]:
    team = distillation.team
    while state.outer_step < distillation.config.iterations and not team.agreed.end:
        state, _ = distillation.advance(state)
        if distillation.due(state.outer_step):
            planned = distillation.config.iterations
            distillation = distillation.replanned(state.outer_step, planned)
        if team.agreed.stop:
            raise KeyboardInterrupt
    check_no_stop(team, state)
    ended = replace(distillation.config, iterations=state.outer_step)
    return distillation.with_config(ended), state


@contextlib.contextmanager
def _signals_as_votes(team: Processes) -> Generator[None]:
    """SIGTERM is a vote, which all count at the next sum; Ctrl-C reaches process 0 as well."""
    received = threading.Event()

    def receive(_number: int, _frame: FrameType | None) -> None:
        received.set()

    handlers = {signal.SIGINT: signal.SIG_IGN, signal.SIGTERM: receive}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    team.vote = lambda: Votes(stop=received.is_set())
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
