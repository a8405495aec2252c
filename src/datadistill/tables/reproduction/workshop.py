"""Where the runs and pools of the tables are made: what is missing is run, the rest goes on."""

import time
from dataclasses import dataclass, replace
from pathlib import Path

from ...artefact import DistilledData
from ...data import LabelledData
from ...errors import ConfigError
from ...pools import Pool
from ...progress import Progress, ProgressCallback, silent
from ...runs.config import RunConfig
from ...runs.experiment import Experiment, load
from ...runs.planning.budget import TimeBudget
from ...runs.planning.cost import measure_cost
from ...runs.pool_job import PoolJob
from ...runs.resuming import as_planned
from ...runs.run import Run
from ...runs.store.folder import RunFolder
from ...runs.team.processes import Processes
from ...showing import Tell, no_message
from .part import Part
from .scale import Scale

RESERVE = 0.25
"""Share of a part's time that is left for what is measured of it."""
ENDED = "The time budget has ended"


class OutOfTimeError(ConfigError):
    """The time budget is used up."""


@dataclass
class Workshop:
    """A folder of runs and pools, and the time that is left.

    Attributes:
        folder: Where ``runs`` and ``pools`` are.
        scale: How much is computed.
        data_dir: The data folder.
        until: The reading of ``time.monotonic`` at which all must end, if there is a budget.
        threads: Processor threads; as many as torch takes by default.
        tell: Receives messages.
        progress: Called often.
    """

    folder: Path
    scale: Scale
    data_dir: Path | None = None
    until: float | None = None
    threads: int | None = None
    tell: Tell = no_message
    progress: ProgressCallback = silent

    def distil(self, part: Part, parts_left: int) -> tuple[DistilledData, Experiment]:
        """The distilled data of a part: those of a finished run, or else made or resumed.

        Args:
            part: The part.
            parts_left: How many parts share the time that is left, this one included.
        """
        until = self._share(parts_left)
        config = part.config(self.scale, self.data_dir, self.folder / "pools")
        pool = self._pool(part, config)
        folder = self.run_folder(part)
        config = as_planned(config, folder)
        loaded = load(replace(config, threads=self.threads))
        loaded = replace(loaded, train=self.some(loaded.train))
        distillation = loaded.prepare()
        budget = None if until is None else TimeBudget(until, config.iterations)
        if until is not None and folder.is_new:
            cost = measure_cost(distillation, loaded.test)
            iterations = cost.iterations_within(until - time.monotonic())
            if iterations < 1:
                raise OutOfTimeError(f"{ENDED}.", "")
            if iterations < config.iterations:
                distillation = distillation.with_config(loaded.config.scaled(iterations))
            budget = TimeBudget(until - cost.test - cost.validation, config.iterations)
        self.tell(f"{part.run}: {folder.path}")
        run = Run(distillation, folder, loaded.test, budget, self.tell, self.tell, self.progress)
        distilled = run.go()
        return (distilled.with_pool(pool) if pool and _drawn(distilled) else distilled), loaded

    def within(self, now: Progress) -> None:
        """Shows the progress of what has no budget of its own, and ends it when the time is up."""
        self._check_time()
        self.progress(now)

    def run_folder(self, part: Part) -> RunFolder:
        """Where a part is distilled."""
        return RunFolder(self.folder / "runs" / part.run)

    def some(self, train: LabelledData) -> LabelledData:
        """The training data, or as many examples at random as the scale takes."""
        most = self.scale.examples
        return train.sample(most, "some") if most and len(train) > most else train

    def _share(self, parts_left: int) -> float | None:
        """The reading of the clock at which a part ends that gets its share of what is left."""
        if self.until is None:
            return None
        self._check_time()
        now = time.monotonic()
        return now + (1 - RESERVE) * (self.until - now) / max(parts_left, 1)

    def _check_time(self) -> None:
        if self.until is not None and self.until <= time.monotonic():
            raise OutOfTimeError(f"{ENDED}.", "Run the same command to continue.")

    def _pool(self, part: Part, config: RunConfig) -> Pool | None:
        """The pool that a part needs: made, continued or extended."""
        wanted = part.pool_at(self.scale)
        if wanted is None or config.pool is None:
            return None
        settings = self.scale.pool_settings
        job = PoolJob(
            data=wanted.data,
            pool=config.pool,
            data_dir=self.data_dir,
            size=wanted.size,
            channels=wanted.channels,
            model=wanted.model,
            model_args=config.model_args,
            networks=self.scale.pool_networks,
            held_out=self.scale.networks,
            preset=self.scale.pool_preset,
            threads=self.threads,
            **settings,
        )
        return job.make(Processes(), self.within, self.tell)


def _drawn(distilled: DistilledData) -> bool:
    """Whether networks are drawn from the pool."""
    return distilled.header.initialization.pool is not None
