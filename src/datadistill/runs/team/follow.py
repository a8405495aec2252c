"""A process that follows process 0: it computes its share, and neither writes nor speaks."""

import contextlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Generator
from dataclasses import replace
from types import FrameType

from ...errors import DataDistillError
from ...progress import silent
from ..distillation import Distillation
from ..experiment import Experiment
from ..run import check_no_stop, made
from ..state import RunState
from ..store.checkpoint import from_bytes
from ..store.fingerprint import check_fingerprint, fingerprint
from .processes import Processes, Wishes, is_follower, together


def follow(team: Processes) -> None:
    """Takes part in the run that process 0 begins, if it begins one."""
    assert team.link is not None
    content = team.link.receive()
    if content is None:
        return
    sent = from_bytes(content)
    found = Experiment.named_by(sent.config, team)
    distillation = found.distillation
    check_fingerprint(
        sent.fingerprint,
        fingerprint(distillation.distiller, distillation.data, distillation.held_out),
    )
    team.link.ready()
    with _signals_as_wishes(team):
        state = sent.state.to(distillation.distiller.network.device)
        distillation, state = _proceed(distillation, state)
        made(distillation, state, found.test, silent)


def followed() -> bool:
    """Whether this is a process that follows; then it has taken part in the run."""
    if not is_follower():
        return False
    with together() as team:  # process 0 tells it all
        follow(team)
    return True


def _proceed(distillation: Distillation, state: RunState) -> tuple[Distillation, RunState]:
    team = distillation.team
    while state.outer_step < distillation.config.iterations and not team.agreed.end:
        state, _ = distillation.advance(state)
        if team.agreed.stop:
            raise KeyboardInterrupt
    check_no_stop(team, state)
    ended = replace(distillation.config, iterations=state.outer_step)
    return distillation.with_config(ended), state


@contextlib.contextmanager
def _signals_as_wishes(team: Processes) -> Generator[None]:
    """SIGTERM is a wish, which all hear at the next sum; Ctrl-C reaches process 0 as well."""
    heard = threading.Event()

    def hear(_number: int, _frame: FrameType | None) -> None:
        heard.set()

    handlers = {signal.SIGINT: signal.SIG_IGN, signal.SIGTERM: hear}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    team.wishes = lambda: Wishes(stop=heard.is_set())
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def main(take_part: Callable[[Processes], None] = follow) -> None:
    """A process that :mod:`.launch` has started."""
    threading.Thread(target=_end_with_process_0, daemon=True).start()
    # There is nothing to write or to tidy up: do not keep process 0 waiting.
    os._exit(_exit_code(take_part))


def _exit_code(take_part: Callable[[Processes], None]) -> int:
    try:
        with together() as team:
            take_part(team)
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # process 0 was told
        if "--debug" in sys.argv:
            traceback.print_exc()
        return error.exit_code if isinstance(error, DataDistillError) else 1
    return 0


def _end_with_process_0() -> None:
    """Waits for the end of the pipe that process 0 holds."""
    os.read(0, 1)
    os._exit(1)
