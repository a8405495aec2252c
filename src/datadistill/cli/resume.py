"""``datadistill resume``: continue a run that was interrupted."""

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
    """Continue a run that was interrupted, from its latest valid checkpoint.

    The result is bit-identical to that of a run without interruption. Only the options below can
    be changed.

    Examples:
        datadistill resume runs/digits-fixed
        datadistill resume runs/digits-fixed --iterations 2000
    """

    run_folder: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """The run folder."""
    iterations: int | None = None
    """Total number of outer steps: more than planned, or those done so far to finish now."""
    data_dir: Path | None = None
    """Data folder, if it has moved."""
    pool: Path | None = None
    """Folder of the pool, if it has moved."""
    weights: Path | None = None
    """File of the pre-trained network, if it has moved."""
    processes: int | None = None
    """Number of processes. Another number may change the last bits of the result."""
    threads: int | None = None
    """CPU threads of each process. Another number may change the last bits of the result."""
    model: str | None = None
    """Your own network, if the run has one: its code runs only if you name it here."""
    objective: str | None = None
    """Your own objective, if the run has one: its code runs only if you name it here."""

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
