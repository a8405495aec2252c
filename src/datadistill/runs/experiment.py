"""From the names in a configuration to the data and the network that they name."""

from dataclasses import dataclass, replace
from pathlib import Path

from .. import data, models
from ..artefact import DistilledData
from ..core.device import resolve_device
from ..data import LabelledData
from ..errors import ConfigError, RunError
from ..progress import ProgressCallback, silent
from .config import RunConfig
from .distillation import Distillation
from .run import Run, Tell
from .store.checkpoint import newest
from .store.folder import RunFolder
from .store.yaml_files import read_config
from .team.processes import Processes


@dataclass(frozen=True)
class Experiment:
    """A distillation whose data and network were found by their names.

    Attributes:
        distillation: What is distilled, and how.
        train: All training data.
        test: The test data.
    """

    distillation: Distillation
    train: LabelledData
    test: LabelledData

    @classmethod
    def named_by(cls, config: RunConfig, team: Processes | None = None) -> "Experiment":
        """Reads the data and makes the network."""
        resolve_device(config.device)  # before the data, which may take long
        train, test = data.load(
            config.data,
            config.data_dir,
            size=config.size,
            channels=config.channels,
            augment=config.augment,
        )
        module = models.find_for(config.model, train.input_shape, train.classes, config.model_args)
        return cls(Distillation.prepare(config, train, module, team=team), train, test)


def config_of_run(folder: RunFolder) -> RunConfig:
    """The configuration of a run that was begun; its checkpoint's, if the file is gone."""
    if not folder.path.is_dir():
        raise RunError(f"There is no run folder {folder.path}.", "Check the path.")
    if folder.is_new:
        raise RunError(
            f"No run was begun in {folder.path}.",
            f"Start one there: datadistill distill … --run {folder.path}",
        )
    folder.check()
    if not folder.config.exists():
        return newest(folder.checkpoints)[0].config
    try:
        return read_config(folder.config)
    except ConfigError as error:
        raise ConfigError(
            error.what, "Put it right, or remove it: it comes back from the checkpoint."
        ) from None


def check_no_code(
    config: RunConfig, where: str, *, model: str | None = None, objective: str | None = None
) -> None:
    """Refuses Python code that a file names: only the user's own words run code.

    Args:
        config: Settings from a file.
        where: Which file.
        model: What the user names as network.
        objective: What the user names as objective.
    """
    for name, said in (("model", model), ("objective", objective)):
        code = getattr(config, name)
        if ":" in code and code != said:
            raise ConfigError(
                f"{where} names Python code, {code}, which is not run because a file says so.",
                f"If you trust it, say so yourself: --{name} {code}",
            )


def resume(
    run: str | Path,
    *,
    iterations: int | None = None,
    progress: ProgressCallback = silent,
    tell: Tell = lambda _text: None,
) -> DistilledData:
    """Goes on with a run that was stopped, from its newest sound checkpoint.

    Args:
        run: The run folder.
        iterations: Outer steps in all, if there shall be more than planned.
        progress: Called after every outer step.
        tell: Told what happens.
    """
    folder = RunFolder(Path(run))
    config = config_of_run(folder)
    check_no_code(config, str(folder.config))
    if iterations is not None:
        config = replace(config, iterations=iterations)
    found = Experiment.named_by(config)
    return Run(found.distillation, folder, found.test, tell=tell, progress=progress).go()
