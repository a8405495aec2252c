"""Runs: a distillation in a folder, that can be stopped at any instant and goes on from there."""

import contextlib
import math
import os
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any

from ..artefact import DistilledData, load
from ..data import LabelledData
from ..durations import time_text
from ..errors import DataDistillError, FileError, RunError, TeamError
from ..evaluation import evaluate
from ..lock import locked
from ..pools import PoolInit
from ..progress import Progress, ProgressCallback, silent
from .config import differences
from .distillation import Distillation
from .state import RunState
from .store.checkpoint import (
    Checkpoint,
    check_like,
    newest,
    path_of,
    prune,
    to_bytes,
    write_checkpoint,
)
from .store.fingerprint import check_fingerprint, fingerprint, rounding
from .store.folder import RunFolder
from .store.metrics import MetricsLog, Row, logging_to
from .store.tensorboard import board
from .team.processes import Processes, Wishes
from .team.stop import Stop, stoppable

Tell = Callable[[str], None]

ECHO = 3.0  # seconds, in which torchrun passes on a signal that was sent to all processes


def run_in_memory(distillation: Distillation, progress: ProgressCallback) -> RunState:
    """Makes all outer steps without leaving a trace."""
    state, show = distillation.start(), _shown_by(progress, distillation.config.iterations)
    while state.outer_step < distillation.config.iterations:
        state, row = distillation.advance(state)
        show(row)
    return state


def choose(distillation: Distillation, state: RunState) -> DistilledData:
    """The last distilled data or the best, as the configuration says."""
    best = distillation.best(state) if distillation.config.keep == "best" else None
    return best or distillation.last(state)


def with_test(
    distillation: Distillation,
    distilled: DistilledData,
    test: LabelledData | None,
    progress: ProgressCallback,
) -> DistilledData:
    """The distilled data with what they reach on the test data as their claim, if there are."""
    if test is None:
        return distilled
    config = distillation.config
    reached = evaluate(
        distilled,
        test,
        networks=config.test_networks,
        device=str(distillation.distiller.network.device),
        team=distillation.team,
        progress=progress,
    )
    return distilled.with_claim(reached.claim())


@dataclass(frozen=True)
class Made:
    """What a run ends in: its last distilled data, its best, and those of them it keeps."""

    last: DistilledData
    best: DistilledData | None
    chosen: DistilledData


def made(
    distillation: Distillation,
    state: RunState,
    test: LabelledData | None,
    progress: ProgressCallback,
) -> Made:
    """Chooses between the best and the last, and tests once."""
    last, best = distillation.last(state), distillation.best(state)
    chosen = best if distillation.config.keep == "best" and best else last
    return Made(last, best, with_test(distillation, chosen, test, progress))


def check_no_stop(team: Processes, state: RunState) -> None:
    """After the last outer step, hears of a stop that was asked for since its sum."""
    team.confer()
    if team.agreed.stop:
        raise _saved(state)


@dataclass(frozen=True)
class Run:
    """A distillation and its folder.

    Attributes:
        distillation: What is distilled, and how.
        folder: Where.
        test: The test data, used once, at the end; without them the figure on held-out
            training data is the claim.
        until: The reading of ``time.monotonic`` at which the run ends, however far it is.
        tell: Told what happens.
        warn: Told, from a signal handler, that the run is going to stop.
        progress: Called after every outer step.
    """

    distillation: Distillation
    folder: RunFolder
    test: LabelledData | None = None
    until: float | None = None
    tell: Tell = lambda _text: None
    warn: Tell = lambda _text: None
    progress: ProgressCallback = silent

    def go(self) -> DistilledData:
        """Begins the run, or goes on with it, and ends it; returns the distilled data."""
        folder = self.folder
        folder.make()
        folder.check()
        echo = ECHO if "TORCHELASTIC_RUN_ID" in os.environ else 0.0
        with locked(folder.lock), _saying_how_to_go_on(folder), stoppable(self.warn, echo) as stop:
            return (self if folder.is_new else self._as_planned())._go(stop)

    def _go(self, stop: Stop) -> DistilledData:
        folder, distillation = self.folder, self.distillation
        for note in distillation.notes:
            self.tell(note)
        prints = fingerprint(distillation.distiller, distillation.data, distillation.held_out)
        state = self._begin(prints) if folder.is_new else self._find(prints)
        if (finished := self._finished(state)) is not None:
            return finished
        team = distillation.team
        team.wishes = lambda: Wishes(stop.requested, self._time_is_up())
        team.begin(lambda: to_bytes(Checkpoint(state, distillation.config, prints)))
        with logging_to(folder.metrics, state.outer_step) as log:
            run, state = self._proceed(state, prints, log, stop)
        check_no_stop(team, state)
        stop.at_once = True  # all that follows can be done again from the last checkpoint
        return run._finish(state)

    def _as_planned(self) -> "Run":
        """The same with the cosine that was planned when the run began, unless one is asked for."""
        planned = newest(self.folder.checkpoints)[0].config
        config = self.distillation.config.as_planned(planned)
        return replace(self, distillation=self.distillation.with_config(config))

    def _begin(self, prints: dict[str, str]) -> RunState:
        """The checkpoint comes first: where there is a configuration there is a checkpoint."""
        config, state = self.distillation.config, self.distillation.start()
        write_checkpoint(self.folder.checkpoints, Checkpoint(state, config, prints))
        self.folder.write_config(config)
        return state

    def _find(self, prints: dict[str, str]) -> RunState:
        """The newest state that can be read, if it is of this very run."""
        config, folder = self.distillation.config, self.folder
        found, passed_over = newest(folder.checkpoints)
        reached = found.state.outer_step
        for reason in passed_over:
            self.tell(f"Passed over a checkpoint: {reason}")
        if changed := differences(found.config, config):
            raise RunError(
                f"The configuration is not that of {folder.path}: {'; '.join(changed)}.",
                "Put it back to resume, or start a new run with it: datadistill distill RECIPE.",
            )
        if config.iterations < reached:
            raise RunError(
                f"{folder.path} is at outer step {reached} already.",
                f"Set iterations to {reached} or more.",
            )
        notes = check_fingerprint(found.fingerprint, prints)
        if found.config.threads != config.threads:
            notes.append(rounding("threads", config.threads, found.config.threads))
        if found.config.processes != config.processes:
            notes.append(rounding("processes", config.processes, found.config.processes))
        if bool(found.config.compiled) != bool(config.compiled):
            notes.append(rounding("compiled", config.compiled, found.config.compiled))
        fresh = self.distillation.like()
        check_like(found.state, fresh)
        left = found.state.seconds / max(reached, 1) * (config.iterations - reached)
        pace = f", about {time_text(left)} left at the pace so far" if reached and left else ""
        where = path_of(folder.checkpoints, reached)
        self.tell(f"Resuming from outer step {reached:,} of {config.iterations:,}{pace} ({where}).")
        for note in notes:
            self.tell(note)
        prune(folder.checkpoints, reached)
        folder.write_config(config)
        return found.state.to(self.distillation.distiller.network.device)

    def _proceed(
        self, state: RunState, prints: dict[str, str], log: MetricsLog, stop: Stop
    ) -> tuple["Run", RunState]:
        """Makes the outer steps that are left, with checkpoints by count and by time."""
        config, folder, team = self.distillation.config, self.folder, self.distillation.team
        show = _shown_by(self.progress, config.iterations)
        every, seconds = config.checkpoint_every or math.inf, 60 * config.checkpoint_minutes
        saved, saved_at = state.outer_step, time.monotonic()
        with board(folder.tensorboard, state.outer_step, config.tensorboard) as draw:
            while state.outer_step < config.iterations:
                if team.agreed.end:
                    return self._end_here(state, prints, log), state
                try:
                    state, row = self.distillation.advance(state)
                except TeamError as error:
                    self._save(state, prints, log)
                    raise _without_the_others(error, state, stop) from error
                log.append(row)
                draw(row)
                show(row)
                due = state.outer_step - saved >= every or time.monotonic() - saved_at >= seconds
                stopped = team.agreed.stop
                if due or stopped or state.outer_step == config.iterations:
                    self._save(state, prints, log)
                    saved, saved_at = state.outer_step, time.monotonic()
                if stopped:
                    raise _saved(state)
        return self, state

    def _time_is_up(self) -> bool:
        return self.until is not None and time.monotonic() >= self.until

    def _save(self, state: RunState, prints: dict[str, str], log: MetricsLog) -> None:
        log.sync()  # a checkpoint never knows of more outer steps than the log
        checkpoint = Checkpoint(state, self.distillation.config, prints)
        write_checkpoint(self.folder.checkpoints, checkpoint)

    def _end_here(self, state: RunState, prints: dict[str, str], log: MetricsLog) -> "Run":
        """The run as if no more outer steps had been asked for than are done."""
        self.tell(f"The time is up after {state.outer_step:,} outer steps.")
        config = replace(self.distillation.config, iterations=state.outer_step)
        run = replace(self, distillation=self.distillation.with_config(config))
        run._save(state, prints, log)
        run.folder.write_config(config)
        return run

    def _finish(self, state: RunState) -> DistilledData:
        """Makes the distilled data, and writes them and the results."""
        folder = self.folder
        ends = made(self.distillation, state, self.test, self.progress)
        places = {folder.last: ends.last, folder.best: ends.best, folder.distilled: ends.chosen}
        for path, distilled in places.items():
            if distilled is not None:
                distilled.save(path)
        folder.write_results(
            {
                "outer_steps": state.outer_step,
                "rejected": state.distiller.rejected,
                "keep": self.distillation.config.keep,
                **{path.stem: _summary(distilled) for path, distilled in places.items()},
            }
        )
        return ends.chosen

    def _finished(self, state: RunState) -> DistilledData | None:
        """The distilled data of a run that was ended already, and need not be again."""
        done = self.folder.read_results().get("run")
        if not isinstance(done, dict) or done.get("outer_steps") != state.outer_step:
            return None
        if state.outer_step < self.distillation.config.iterations:
            return None
        try:
            distilled = load(self.folder.distilled)
        except DataDistillError as error:
            self.tell(f"Making it again: {error.what}")
            return None
        self.tell(f"It is finished. More outer steps: set iterations above {state.outer_step:,}.")
        chosen = self.distillation.distiller.initialization
        pool = chosen.pool if isinstance(chosen, PoolInit) else None
        return replace(distilled, module=self.distillation.module, pool=pool)


@contextlib.contextmanager
def _saying_how_to_go_on(folder: RunFolder) -> Generator[None]:
    """Adds to an error or an interrupt what to do about this run."""
    go_on = f"datadistill resume {folder.path}"
    try:
        yield
    except FileError as error:
        if not folder.path.is_dir():
            raise FileError(
                f"The run folder {folder.path} was removed while the run was going.",
                "Start it again, in a folder that stays.",
            ) from error
        raise FileError(error.what, f"{error.remedy} Then go on: {go_on}") from error
    except TeamError as error:
        raise TeamError(error.what, f"{error.remedy} Go on: {go_on}") from error
    except KeyboardInterrupt as interrupt:
        what = str(interrupt) or "what was done since the last checkpoint will be done again."
        raise KeyboardInterrupt(f"{what}\nGo on: {go_on}") from None


def _saved(state: RunState) -> KeyboardInterrupt:
    return KeyboardInterrupt(f"outer step {state.outer_step:,} is saved.")


def _without_the_others(error: TeamError, state: RunState, stop: Stop) -> BaseException:
    """What to raise where another process has ended: it may have been stopped like this one."""
    if stop.requested:
        return _saved(state)
    return TeamError(f"{error.what} Outer step {state.outer_step:,} is saved.", error.remedy)


def _shown_by(progress: ProgressCallback, iterations: int) -> Callable[[Row], None]:
    shown: dict[str, float] = {}

    def show(row: Row) -> None:
        if row.loss is not None:
            shown["loss"] = row.loss
        if row.held_out:
            shown[f"held-out {row.held_out.metric}"] = row.held_out.mean
        if row.rejected:
            shown["rejected"] = row.rejected
        progress(Progress("distilling", row.outer_step, iterations, dict(shown)))

    return show


def _summary(distilled: DistilledData | None) -> dict[str, Any] | None:
    if distilled is None:
        return None
    claim = distilled.claim
    return {
        "outer_step": distilled.header.configuration["outer_step"],
        "claim": claim and claim.model_dump(),
    }
