"""Carrying out a run, and telling what came of it."""

from ..report import draw
from ..report.samples import can_be_drawn
from ..runs.experiment import Experiment
from ..runs.run import Run
from ..runs.store.folder import RunFolder
from .console import Common, out


def carry_out(
    command: Common, experiment: Experiment, folder: RunFolder, until: float | None = None
) -> None:
    """Begins or resumes a run, draws its distilled data and prints what they reach."""
    with command.bars() as progress:
        distilled = Run(
            experiment.distillation,
            folder,
            experiment.test,
            until=until,
            tell=command.say,
            warn=command.warn,
            progress=progress,
        ).go()
    out.print(str(distilled.claim), markup=False)
    out.print(f"run: {folder.path}", markup=False)
    out.print(f"distilled data: {folder.distilled}", markup=False)
    if can_be_drawn(experiment.train):
        draw(distilled, folder.picture)
        out.print(f"picture: {folder.picture}", markup=False)
    config = experiment.distillation.config
    needed = f" --pool {config.pool}" if config.initialization == "random-pretrained" else ""
    command.say(f"Use them: datadistill train {folder.distilled}{needed}")
