"""What a command finds beside an artefact, and what it takes from it."""

from pathlib import Path

from torch import nn

from ..artefact import DistilledData
from ..data import DATA_SETS
from ..errors import ArtefactError, ConfigError
from ..runs.store.results import check_artefact


def data_name(given: str | None, known: str) -> str:
    """The real data to test on: those that the user names, or built-in ones of the artefact.

    An artefact may come from anybody: a path or Python code that it names is not opened.
    """
    if given is None and known not in DATA_SETS:
        raise ConfigError(
            f"The data set of this artefact, {known!r}, is not built in.",
            f"Give its path, e.g. --data {known}.npz",
        )
    return given or known


def results_of(path: Path) -> Path:
    """Where the figures of an artefact or a run folder are kept."""
    return path / "results.json" if path.is_dir() else path.with_suffix(".results.json")


def artefact_at(path: Path) -> Path:
    """The artefact that a path names: a file, or the one of a run folder."""
    if not path.is_dir():
        return path
    if not (path / "distilled.safetensors").is_file():
        raise ArtefactError(
            f"The folder {path} holds no distilled.safetensors.",
            "Name an artefact, or the folder of a finished run.",
        )
    check_artefact(path / "distilled.safetensors", path / "results.json")
    return path / "distilled.safetensors"


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
