"""What a command finds beside an artefact, and what it takes from it."""

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from torch import nn

from ..artefact import DistilledData
from ..artefact.reader import artefact_at as artefact_in
from ..data import DATA_SETS
from ..errors import ConfigError, DataError
from ..runs import RunConfig
from ..runs.experiment import is_lasting, names_code, unnamed_code
from ..runs.store.folder import RunFolder
from ..runs.store.results import check_artefact
from ..runs.store.yaml_files import read_config


class _Choice(Protocol):
    """A command with an artefact, which may need data and a pool."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def artefact(self) -> Path: ...
    @property
    def data_dir(self) -> Path | None: ...
    @property
    def pool(self) -> Path | None: ...


C = TypeVar("C", bound=_Choice)


def as_run_says(command: C, distilled: DistilledData) -> C:
    """The command with the data folder and the pool of its run, where the user names none.

    A run folder stands for the data and the pool that its ``config.yaml`` names. An artefact alone,
    which may come from anybody, does not.
    """
    config = config_of(command.artefact)
    if config is None:
        return command
    found: dict[str, Path] = {}
    if command.data_dir is None and config.data_dir and config.data_dir.is_dir():
        found["data_dir"] = config.data_dir
    drawn_from = distilled.header.initialization.pool is not None
    if drawn_from and command.pool is None and config.pool and config.pool.is_dir():
        found["pool"] = config.pool
    return replace(command, **found)


def config_of(path: Path) -> RunConfig | None:
    """The settings of the run in a folder; None for an artefact alone."""
    file = RunFolder(path).config
    return read_config(file) if path.is_dir() and file.is_file() else None


def data_name(given: str | None, path: Path, distilled: DistilledData, known: str) -> str:
    """The real data to test on: those that the user names, those of the run, or built-in ones.

    An artefact may come from anybody: a path or Python code that it names is not opened.

    Args:
        given: What the user names.
        path: The artefact, or its run folder.
        distilled: What was read from it.
        known: The name of the data, by the artefact.
    """
    if given is not None:
        return given
    config = config_of(path) if known == distilled.header.data else None
    if config and names_code("data", config.data):
        raise unnamed_code(str(RunFolder(path).config), "data", config.data)
    if config and is_lasting(config.data):
        if Path(config.data).is_absolute() and not Path(config.data).exists():
            raise DataError(
                f"The data of this run, {config.data}, are not there.",
                "Put them back, or name them: --data PATH",
            )
        return config.data
    if known not in DATA_SETS:
        raise ConfigError(
            f"The data set of this artefact, {known!r}, is not built in.",
            "Name its folder or file: --data PATH. Data in memory are for Python: dd.evaluate(…).",
        )
    return known


def results_of(path: Path) -> Path:
    """Where the figures of an artefact or a run folder are kept."""
    return path / "results.json" if path.is_dir() else path.with_suffix(".results.json")


def artefact_at(path: Path) -> Path:
    """The artefact that a path names: a file, or the one of a run folder."""
    artefact = artefact_in(path)
    if path.is_dir():
        check_artefact(artefact, path / "results.json")
    return artefact


def is_architecture_of(module: nn.Module, distilled: DistilledData) -> bool:
    """Whether a module has the weights of the network that was distilled for."""
    wanted = distilled.header.architecture.weights
    frozen = {name.removeprefix("constants/") for name in distilled.carried}
    found = {
        name: str([*p.shape])
        for name, p in module.named_parameters()
        if p.requires_grad and name not in frozen
    }
    return found == {name: text[text.index("[") :] for name, text in wanted.items()}
