"""Reading an artefact."""

from pathlib import Path

import torch
from pydantic import ValidationError

from ..core.distilled import Steps
from ..errors import ArtefactError
from .container import read_container
from .distilled_data import DistilledData
from .header import Header
from .schema1 import upgraded


def load(path: str | Path) -> DistilledData:
    """Reads an artefact and checks all of it. Needs no data set, and executes nothing.

    Args:
        path: A file written by :meth:`DistilledData.save` or ``datadistill distill``.
    """
    path = Path(path)
    tensors, raw_header = read_container(path)
    if raw_header["schema_version"] == 1:
        raw_header = upgraded(raw_header)
    try:
        header = Header.model_validate(raw_header)
        steps = Steps(*(tensors.pop(n) for n in ("inputs", "labels", "learning_rates")))
    except ValidationError as error:
        first = error.errors()[0]
        field_name = ".".join(map(str, first["loc"]))
        found = first["msg"].removeprefix("Value error, ")
        raise _unsound(path, f"its header's {field_name}: {found}") from error
    except KeyError as error:
        raise _unsound(path, f"it has no tensor {error}") from error
    if trouble := _trouble(steps, header):
        raise _unsound(path, trouble)
    return DistilledData(steps, header, carried=tensors)


def _trouble(steps: Steps, header: Header) -> str | None:
    """What is wrong with tensors that are whole but make no sense."""
    schedule = header.schedule
    if steps.inputs.shape[:2] != (schedule.steps, schedule.images):
        return f"inputs of shape {tuple(steps.inputs.shape)} do not fit its schedule"
    if steps.labels.shape[:2] != steps.inputs.shape[:2]:
        return f"labels of shape {tuple(steps.labels.shape)} do not fit its schedule"
    if steps.learning_rates.shape != (schedule.epochs, schedule.steps):
        return (
            f"learning rates of shape {tuple(steps.learning_rates.shape)} do not fit its schedule"
        )
    for name, tensor in [("inputs", steps.inputs), ("learning rates", steps.learning_rates)]:
        if not tensor.is_floating_point() or not torch.isfinite(tensor).all():
            return f"its {name} are not all finite floating-point numbers"
    if not (steps.learning_rates > 0).all():
        return "its learning rates are not all positive"
    if steps.labels.is_floating_point() and not torch.isfinite(steps.labels).all():
        return "its labels are not all finite"
    return None


def _unsound(path: Path, what: str) -> ArtefactError:
    return ArtefactError(f"{path} is not a valid artefact: {what}.", "Make it again.")
