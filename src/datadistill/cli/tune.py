"""``datadistill tune``: search the settings that matter, on held-out training data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ..durations import parse_time
from ..errors import ConfigError
from ..hints import command
from ..runs.team.environment import world_size
from .distill import Distill, lasting


@dataclass(frozen=True)
class Tune(Distill):
    """Search the settings that matter by short runs, judged on held-out training data.

    Takes the recipes and flags of distill, which the search begins with. The best settings are
    written as a recipe. Needs optuna: pip install 'datadistill[tune]'. The same command again
    continues a search that was interrupted.

    Examples:
        datadistill tune mnist-random-100 --time-budget 2h
        datadistill tune --data photos/ --preset best --time-budget 1h
        datadistill distill runs/tune-mnist-random-100/best.yaml
    """

    trials: int = 20
    """Runs that are made, at most."""
    search: tuple[str, ...] = ()
    """Settings to search, e.g. --search learning_rate momentum. By default all of learning_rate,
    outer_lr, rates_lr, labels, start, momentum, averaging, batch_size, betas and clip_norm."""

    no_flags: ClassVar[tuple[str, ...]] = ("config", "named", "dry_run", "resume", "overwrite")

    def run(self) -> None:
        """Makes the trials, and writes the best settings."""
        from ..runs.experiment import load
        from ..runs.tuning.space import check_installed
        from ..runs.tuning.tuning import Tuning

        check_installed()
        if max(self.config.processes or 1, world_size()) > 1:
            raise ConfigError("A search is one process.", "Leave out --processes and torchrun.")
        if self.trials < 1:
            raise ConfigError(f"--trials is {self.trials}.", "Set it to at least 1.")
        seconds = parse_time(self.time_budget) if self.time_budget else None
        loaded = load(lasting(self.config))
        tuning = Tuning(
            loaded.config,
            loaded.train,
            loaded.module,
            self._place(),
            self.trials,
            seconds,
            self.say,
        )
        found = tuning.go(self.search)
        self.say(f"The best settings: {found.recipe}")
        self.say(f"Use them: {command('distill', found.recipe)}")

    def _place(self) -> Path:
        """The folder of the search; the same for the same recipe, so that it continues."""
        if self.run_folder is not None:
            return self.run_folder
        kind = self.config.model.rpartition(":")[2].lower()
        own = f"{Path(self.config.data).stem}-{kind}-{self.config.initialization}"
        return Path("runs") / f"tune-{Path(self.recipe).stem if self.recipe else own}"
