"""Reading an artefact."""

from pathlib import Path

from pydantic import ValidationError

from ..core.distilled import LEARNED, Steps
from ..errors import ArtefactError, did_you_mean
from ..given import typed
from .bounds import DEPTH, is_deep
from .checks import UnsoundError, check
from .container import read_container
from .distilled_data import STORED, WHITENING, DistilledData
from .header import Header
from .published import published, published_names
from .restoring import restored, stored_in, whitening_of
from .schema1 import upgraded

FILE_NAME = "distilled.safetensors"
"""What the artefact of a run is called in its folder."""


@typed
def load(path: str | Path) -> DistilledData:
    """Reads an artefact and checks all of it. Needs no data set, and executes nothing.

    A built-in network is compared with the tensors by its shapes alone: whatever its size, none of
    its weights is allocated. What it takes to use it is known as :attr:`DistilledData.cost`.

    Args:
        path: A file written by :meth:`DistilledData.save`, the folder of a finished run, or the
            name of an artefact that comes with the package, such as ``"mnist-fixed-10"``.
    """
    path = artefact_at(path)
    tensors, raw_header = read_container(path)
    if is_deep(raw_header):
        raise _unsound(path, f"its header is nested deeper than {DEPTH} levels")
    if raw_header["schema_version"] == 1:
        raw_header = upgraded(raw_header)
    try:
        header = Header.model_validate(raw_header)
        stored = {n.removeprefix(STORED): tensors.pop(n) for n in stored_in(tensors, header)}
        white = {n: tensors.pop(n) for n in [*tensors] if n.startswith(WHITENING)}
        held = LEARNED[1:] if header.parametrisation else LEARNED
        learned = [tensors.pop(name) for name in held]
    except ValidationError as error:
        first = error.errors()[0]
        field_name = ".".join(map(str, first["loc"]))[:100]
        found = first["msg"].removeprefix("Value error, ").replace("\n", " ")[:400]
        raise _unsound(path, f"its header's {field_name}: {found}") from error
    except KeyError as error:
        raise _unsound(path, f"it has no tensor {error}") from error
    try:
        if header.parametrisation:
            learned = [restored(stored, header), *learned]
        steps = Steps(*learned, inner=header.schedule.inner_batches)
        whitening = whitening_of(white, header, steps.inputs.shape[2:])
        check(steps, header, tensors, whitening)
    except UnsoundError as error:
        raise _unsound(path, error.found) from None
    return DistilledData(steps, header, carried=tensors, stored=stored, whitening=whitening)


def artefact_at(path: str | Path) -> Path:
    """The artefact that a path names: a file, the one in a run folder, or one of the package."""
    path = Path(path)
    if (ours := published(path)) is not None:
        return ours
    if not path.exists() and not path.suffix and path.name == str(path):
        raise ArtefactError(
            f"There is no file {path}.",
            "Check the path; datadistill artefacts lists those that are published."
            + did_you_mean(str(path), published_names()),
        )
    if not path.is_dir():
        return path
    if not (path / FILE_NAME).is_file():
        raise ArtefactError(
            f"The folder {path} holds no {FILE_NAME}.",
            "Name an artefact, or the folder of a finished run.",
        )
    return path / FILE_NAME


def _unsound(path: Path, what: str) -> ArtefactError:
    return ArtefactError(f"{path} is not a valid artefact: {what}.", "Make it again.")
