"""``datadistill resume``: go on with a run that was stopped."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

from ..runs import RunConfig
from ..runs.experiment import Experiment, check_no_code, config_of_run
from ..runs.store.folder import RunFolder
from ..runs.team.follow import followed
from ..runs.team.processes import together
from .console import Common
from .outcome import carry_out


@dataclass(frozen=True)
class Resume(Common):
    """Go on with a run that was stopped, from its newest sound checkpoint.

    It ends in the same bytes as if it had never been stopped. Only what is listed here may be
    changed. Examples: datadistill resume runs/digits-fixed; datadistill resume runs/digits-fixed
    --iterations 2000
    """

    run_folder: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """The run folder."""
    iterations: int | None = None
    """Outer steps in all: more than planned, or as many as are done, to end it there."""
    data_dir: Path | None = None
    """Data folder, if it has moved."""
    pool: Path | None = None
    """Folder of the pool, if it has moved."""
    weights: Path | None = None
    """File of the pre-trained network, if it has moved."""
    processes: int | None = None
    """Processes; with another number the last bits of figures may differ."""
    threads: int | None = None
    """Processor threads of each; with another number the last bits of figures may differ."""
    model: str | None = None
    """Your own network, if the run has one: code runs only if you name it yourself."""
    objective: str | None = None
    """Your own objective, if the run has one, likewise."""

    def run(self) -> None:
        """Resumes, tests once on the test set, and writes the artefact and its picture."""
        if followed():
            return
        folder = RunFolder(self.run_folder)
        before = config_of_run(folder)
        config = self._changed(before, folder)
        with together(config.processes or 1, debug=self.debug) as team:
            if team.size != before.processes:
                config = replace(config, threads=self.threads)
            carry_out(self, Experiment.named_by(config, team), folder)

    def _changed(self, config: RunConfig, folder: RunFolder) -> RunConfig:
        """The run's settings with those that are given here."""
        check_no_code(config, str(folder.config), model=self.model, objective=self.objective)
        given: dict[str, Any] = {
            "iterations": self.iterations,
            "data_dir": self.data_dir and self.data_dir.absolute(),
            "pool": self.pool and self.pool.absolute(),
            "weights": self.weights and self.weights.absolute(),
            "processes": self.processes,
            "threads": self.threads,
        }
        config = replace(config, **{n: value for n, value in given.items() if value is not None})
        config.check_division()
        return config
