"""``datadistill resume``: continue a run that was interrupted."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import tyro

from ..engine.choice import EngineName
from ..runs.team.environment import is_worker
from .console import Common


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
    engine: EngineName | None = None
    """Engine: fast, kernels (fast, never without C kernels), torch (fast without C kernels) or
    plain. By default the run's; another one may change the last bits of the result."""
    model: str | None = None
    """Your own network, if the run has one: code runs only if you name it yourself."""
    data: str | None = None
    """Your own data set, if the run has one as file.py:NAME, likewise."""
    objective: str | None = None
    """Your own objective, likewise."""
    update_rule: str | None = None
    """Your own update rule, likewise."""
    adjoint: str | None = None
    """Your own adjoint, likewise."""
    initialization: str | None = None
    """Your own initialization, likewise."""
    parametrisation: str | None = None
    """Your own parametrisation, likewise."""
    view: str | None = None
    """Your own view, likewise."""

    def run(self) -> None:
        """Resumes, tests once on the test set, and writes the artefact and its picture."""
        from ..runs.experiment import CODE_SETTINGS
        from ..runs.follow import follow_torchrun, worker
        from ..runs.resuming import CHANGES, resume_run
        from ..runs.store.folder import RunFolder
        from ..runs.team.processes import together
        from .outcome import show_result

        named = {name: getattr(self, name) for name in CODE_SETTINGS}
        if is_worker():
            follow_torchrun(named)
            return
        folder = RunFolder(self.run_folder)
        team = partial(together, worker=worker, named=named, debug=self.debug)
        given = named | {name: getattr(self, name) for name in (*CHANGES, "processes")}
        with self.bars() as progress:
            ended = resume_run(
                folder, given, team, tell=self.say, warn=self.warn, progress=progress
            )
        show_result(self, ended, folder)
