"""Runs: a distillation in a folder, that can be stopped at any instant and resumed."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from ..artefact import DistilledData
from ..core.values import one_line
from ..data import LabelledData
from ..engine import Engines, continued, using
from ..errors import DataDistillError, RunError, TeamError
from ..hints import command, flag
from ..notices import warn
from ..progress import Progress, ProgressCallback, silent
from ..showing import Tell, no_message
from .config import RunConfig
from .distillation import Distillation
from .experiment import code_flags, repeat_flags
from .interrupt import check_no_stop, left_alone, resume_hint, stopped
from .outcome import Outcome, is_finished, load_finished
from .store.checkpoint import Checkpoint, prune, to_bytes, write_checkpoint
from .store.folder import RunFolder
from .store.metrics import MetricsLog, MetricsRow, logging_to
from .store.restore import Saved, check_same_run, opened, other_engine, resuming_from
from .store.saver import Saver
from .store.state import RunState
from .store.tensorboard import board
from .team.processes import Votes
from .team.stop import Stop, stoppable


class Budget(Protocol):
    """The time that outer steps have: a :class:`.planning.budget.TimeBudget`."""

    def is_up(self) -> bool:
        """Whether the time is up."""
        ...

    def iterations(self, outer_step: int, planned: int) -> int:
        """How many outer steps fit in all."""
        ...


ECHO = 3.0  # seconds, in which torchrun passes on a signal that was sent to all processes


def distill_in_memory(
    distillation: Distillation,
    test: LabelledData | None,
    progress: ProgressCallback = silent,
    tell: Tell = no_message,
) -> DistilledData:
    """Makes all outer steps and the test without writing a file."""
    config, state = distillation.config, distillation.start()
    show = _reporter(progress)
    for note in distillation.notes:
        tell(note)
    with using(config.engine):
        while state.outer_step < config.iterations:
            state, row = distillation.advance(state)
            show(row, config.iterations)
        outcome = Outcome.of(distillation, state, test, progress)
    tell(str(outcome))
    return outcome.kept


class Ended(NamedTuple):
    """A run that has ended: what it made, and its state as in the last checkpoint."""

    distilled: DistilledData
    state: RunState


@dataclass(frozen=True)
class Run:
    """A distillation and its folder.

    Attributes:
        distillation: What is distilled, and how.
        folder: Where.
        test: The test data, used once, at the end; without them the figure on held-out
            training data is the claim.
        budget: The time that the outer steps have, if it is limited.
        tell: Receives messages.
        warn: Receives, from a signal handler, the message that the run is going to stop.
        progress: Called after every outer step.
        in_python: Whether dd.distill was called, rather than a command.
    """

    distillation: Distillation
    folder: RunFolder
    test: LabelledData | None = None
    budget: Budget | None = None
    tell: Tell = no_message
    warn: Tell = no_message
    progress: ProgressCallback = silent
    in_python: bool = False

    __repr__ = one_line

    def go(self) -> DistilledData:
        """Starts the run, or resumes it, and ends it; returns the distilled data."""
        with opened(self.folder) as saved:
            return self.go_from(saved).distilled

    def go_from(self, saved: Saved | None) -> Ended:
        """The same where the folder has been opened already.

        Args:
            saved: What was found there: the checkpoint to resume from, if any.
        """
        echo = ECHO if "TORCHELASTIC_RUN_ID" in os.environ else 0.0
        engine = using(self.distillation.config.engine)
        with engine, resume_hint(self.folder, self._resume()), stoppable(self.warn, echo) as stop:
            return (self._as_planned(saved) if saved else self)._go(saved, stop)

    def _as_planned(self, saved: Saved) -> "Run":
        """The same with the cosine that was planned at the start, unless one is asked for."""
        config = self.distillation.config.as_planned(saved.config)
        return replace(self, distillation=self.distillation.with_config(config))

    def _go(self, saved: Saved | None, stop: Stop) -> Ended:
        distillation, config = self.distillation, self.distillation.config
        for note in distillation.notes:
            self.tell(note)
        prints = distillation.fingerprint(saved.fingerprint if saved else None)
        state = self._restore(saved, prints) if saved else self._start(prints)
        if (finished := self._finished(state)) is not None:
            return Ended(finished, state)
        if saved:
            self._warn_of_another_engine(saved)
        team = distillation.team
        team.vote = lambda: Votes(stop.requested, bool(self.budget and self.budget.is_up()))
        try:
            team.begin(lambda: to_bytes(Checkpoint(state, config, prints)))
        except TeamError as error:
            raise left_alone(error, state, stop) from error
        with logging_to(self.folder.metrics, state.outer_step, saved.log if saved else "") as log:
            saver = Saver(self.folder, config, prints, log, state.outer_step)
            run, state = self._proceed(state, saver, log, stop)
        check_no_stop(team, state, stop)
        stop.at_once = True  # all that follows can be done again from the last checkpoint
        return Ended(run._finish(state), state)

    def _start(self, prints: dict[str, str]) -> RunState:
        """The checkpoint comes first: where there is a configuration there is a checkpoint."""
        config, state = self.distillation.config, self.distillation.start()
        state = self.distillation.pictured(state)
        write_checkpoint(self.folder.checkpoints, Checkpoint(state, config, prints))
        self._write_config(config, self._engines(state))
        return state

    def _restore(self, saved: Saved, prints: dict[str, str]) -> RunState:
        """The state of a checkpoint, if it is one of this run."""
        config, folder = self.distillation.config, self.folder
        for reason in saved.skipped:
            self.tell(f"Skipped a checkpoint: {reason}")
        like = self.distillation.like()
        images = self.distillation.images(like)
        notes = check_same_run(saved, folder, config, prints, like, images)
        self.tell(resuming_from(saved, folder, config.iterations))
        for note in notes:
            self.tell(note)
        prune(folder.checkpoints, saved.state.outer_step)
        done = is_finished(folder, saved.state, config.iterations)
        self._write_config(config, saved.state.engines if done else self._engines(saved.state))
        return saved.state.to(self.distillation.distiller.network.device)

    def _resume(self, **settings: object) -> str:
        """How to resume this run, with some settings changed: a command, or a call in Python."""
        if self.in_python:
            given = {"run": str(self.folder.path), **settings}
            given.pop("processes", None)  # a call in Python is one process
            named = ", ".join(f"{name}={value!r}" for name, value in given.items())
            return f"make the same call again: dd.distill(…, {named})"
        flags = [word for name, value in settings.items() for word in (flag(name), value)]
        return command("resume", self.folder.path, *code_flags(self.distillation.config), *flags)

    def _write_config(self, config: RunConfig, engines: Engines) -> None:
        """Writes ``config.yaml``, which tells how to make such a run again from its folder."""
        repeat = command("distill", self.folder.config.name, *repeat_flags(config))
        if self.in_python:
            repeat = "make the same dd.distill call with another run"
        self.folder.write_config(config, engines, repeat)

    def _engines(self, state: RunState) -> Engines:
        """The engines of the outer steps that are done, and that of the next."""
        return continued(state.engines, state.outer_step + 1, self.distillation.engine_record)

    def _warn_of_another_engine(self, saved: Saved) -> None:
        """Says, however quiet the command, that the result will not be the same to the last bit."""
        now, config = self.distillation.engine_record, self.distillation.config
        if note := other_engine(saved, config, now):
            before = saved.state.engines[-1:]
            again = [f"To compute as before: {self._resume(**one.settings())}" for one in before]
            warn("\n".join([note, *again]))

    def _proceed(
        self, state: RunState, saver: Saver, log: MetricsLog, stop: Stop
    ) -> tuple["Run", RunState]:
        """Makes the outer steps that are left; returns the run as it ended, and its state."""
        run, team, show = self, self.distillation.team, _reporter(self.progress)
        tensorboard = self.distillation.config.tensorboard
        with board(self.folder.tensorboard, state.outer_step, tensorboard) as draw:
            while state.outer_step < (config := run.distillation.config).iterations:
                if team.agreed.end and state.outer_step:
                    self.tell(f"The time budget ended after {state.outer_step:,} outer steps.")
                    ended = replace(config, iterations=state.outer_step)
                    return run._planned(ended, state, saver), state
                try:
                    state, row = run.distillation.advance(state)
                except TeamError as error:
                    saver.save(state, config)
                    raise left_alone(error, state, stop) from error
                state = run.distillation.pictured(state)
                log.append(row)
                draw(row)
                show(row, config.iterations)
                if run.distillation.due(state.outer_step):
                    run = run._within_budget(state, saver)
                last, asked = state.outer_step == config.iterations, team.agreed.stop
                if last or asked or saver.due(state.outer_step):
                    saver.save(state, run.distillation.config)
                if asked:
                    raise stopped(state, stop)
        return run, state

    def _within_budget(self, state: RunState, saver: Saver) -> "Run":
        """The run with as many outer steps as fit into the time, should the pace have changed."""
        planned, t = self.distillation.config.iterations, state.outer_step
        fit = self.budget.iterations(t, planned) if self.budget else planned
        distillation = self.distillation.replanned(t, fit)
        if distillation is self.distillation:
            return self
        slower = "slower" if fit < planned else "faster"
        self.tell(f"The run is {slower} than planned: {fit:,} outer steps instead of {planned:,}.")
        return self._planned(distillation.config, state, saver)

    def _planned(self, config: RunConfig, state: RunState, saver: Saver) -> "Run":
        """The run with another number of outer steps from here on, as its files say too."""
        saver.save(state, config)
        self._write_config(config, state.engines)
        return replace(self, distillation=self.distillation.with_config(config))

    def _finish(self, state: RunState) -> DistilledData:
        """Makes the distilled data, and writes them and the results."""
        outcome = Outcome.of(self.distillation, state, self.test, self.progress)
        outcome.write(self.folder, state, self.distillation.config.keep)
        self.tell(str(outcome))
        return outcome.kept

    def _finished(self, state: RunState) -> DistilledData | None:
        """The distilled data of a run that has been finished before."""
        if not is_finished(self.folder, state, self.distillation.config.iterations):
            return None
        try:
            distilled = load_finished(self.folder, self.distillation)
        except RunError:
            raise
        except DataDistillError as error:
            self.tell(f"Making the distilled data again: {error.what}")
            return None
        self.tell(
            f"The run is finished. For more outer steps, set iterations above {state.outer_step:,}."
        )
        return distilled


def _reporter(progress: ProgressCallback) -> Callable[[MetricsRow, int], None]:
    """Turns outer steps into progress; a figure that is not new stays as it was."""
    shown: dict[str, float] = {}

    def show(row: MetricsRow, iterations: int) -> None:
        if row.loss is not None:
            shown["loss"] = row.loss
        if row.held_out:
            shown[f"held-out {row.held_out.metric}"] = row.held_out.mean
        if row.rejected:
            shown["rejected"] = row.rejected
        progress(Progress("distilling", row.outer_step, iterations, dict(shown)))

    return show
