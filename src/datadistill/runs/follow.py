"""A worker of a run: it computes its share of the work, and neither writes nor prints."""

import contextlib
import signal
from collections.abc import Generator
from dataclasses import replace
from types import FrameType

from ..engine import using
from ..progress import silent
from . import experiment
from .distillation import Distillation
from .experiment import check_named
from .interrupt import check_no_stop
from .outcome import Outcome
from .store.checkpoint import from_bytes
from .store.fingerprint import check_fingerprint
from .store.state import RunState
from .team.handover import Named
from .team.processes import Processes, Votes, together
from .team.signals import ENDING
from .team.stop import Stop
from .team.worker import run_worker


def follow(team: Processes, named: Named) -> None:
    """Takes part in the run that process 0 begins, if it begins one.

    Args:
        team: The processes of the run.
        named: The Python code that the user has named, by setting; no other is imported.
    """
    assert team.link is not None
    content = team.link.receive()
    if content is None:
        return
    sent = from_bytes(content)
    check_named(sent.config, named)
    loaded = experiment.load(sent.config)
    distillation = loaded.prepare(team)
    prints = distillation.fingerprint(sent.fingerprint)
    check_fingerprint(sent.fingerprint, prints)
    team.link.ready()
    with signals_as_votes(team) as stop, using(distillation.config.engine):
        state = sent.state.to(distillation.distiller.network.device)
        distillation, state = _proceed(distillation, state, stop)
        Outcome.of(distillation, state, loaded.test, silent)


def follow_torchrun(named: Named) -> None:
    """Takes part as a process that torchrun has started; process 0 sends all it needs.

    Args:
        named: The Python code that this process's own command line names, by setting.
    """
    with together() as team:
        follow(team, named)


def worker(handover: bytes) -> None:
    """Takes part as a process that :mod:`.team.launch` has started."""
    run_worker(follow, handover)


def _proceed(
    distillation: Distillation, state: RunState, stop: Stop
) -> tuple[Distillation, RunState]:
    team = distillation.team
    while state.outer_step < distillation.config.iterations and not team.agreed.end:
        state, _ = distillation.advance(state)
        if distillation.due(state.outer_step):
            planned = distillation.config.iterations
            distillation = distillation.replanned(state.outer_step, planned)
        if team.agreed.stop:
            raise KeyboardInterrupt
    check_no_stop(team, state, stop)
    ended = replace(distillation.config, iterations=state.outer_step)
    return distillation.with_config(ended), state


@contextlib.contextmanager
def signals_as_votes(team: Processes) -> Generator[Stop]:
    """SIGTERM is a vote, which all count at the next sum; the other signals reach process 0 too."""
    stop = Stop()

    def receive(number: int, _frame: FrameType | None) -> None:
        stop.signal = number
        signal.signal(number, signal.SIG_DFL)  # a second one ends this process even if it hangs

    handlers = dict.fromkeys(ENDING, signal.SIG_IGN) | {signal.SIGTERM: receive}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    team.vote = lambda: Votes(stop.requested)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
