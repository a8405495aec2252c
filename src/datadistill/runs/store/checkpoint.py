"""Checkpoints: the state of a run after some outer step, in one file each."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
from pydantic import BaseModel, ConfigDict, FailFast, Field, ValidationError
from torch import Tensor

from ... import files
from ...artefact import Claim
from ...artefact.container import SCHEMA_VERSION, decode, encode, read_container
from ...core.distilled import COEFFICIENTS, LEARNED, Steps
from ...core.distiller import DistillerState
from ...core.optimizer import AdamState
from ...engine import Engines
from ...errors import ArtefactError, ConfigError, NonFiniteError, RunError
from ..config import RunConfig, config_from
from .snapshots import Snapshots
from .state import Measured, RunState

KEPT = 2
"""How many checkpoints are kept."""

Count = Annotated[int, Field(ge=0)]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Reached(_Record):
    outer_step: Count
    claim: Claim


class _Header(_Record):
    schema_version: int
    outer_step: Count
    rejected: Count
    rejected_in_a_row: Count
    norm: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    adam_count: Count
    best: _Reached | None
    last: _Reached | None
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    configuration: dict[str, Any]
    engines: Annotated[Engines, FailFast()] = ()
    fingerprint: dict[str, str]
    log: Annotated[str, Field(pattern=r"^([0-9a-f]{8})?$")] = ""
    snapshots: tuple[Count, ...] = ()


@dataclass(frozen=True)
class Checkpoint:
    """A run's state, with what is needed to know that it is the same run.

    Attributes:
        state: The state.
        config: The configuration it was reached with.
        fingerprint: Hashes of the data and the network, and the versions in use.
        log: The checksum of the log's last line, by which another run's log is known; empty if
            there is no line, and in checkpoints of earlier versions.
    """

    state: RunState
    config: RunConfig
    fingerprint: dict[str, str]
    log: str = ""


def path_of(folder: Path, outer_step: int) -> Path:
    """The file of the checkpoint after an outer step."""
    return folder / f"step-{outer_step:08d}.safetensors"


def checkpoints_in(folder: Path) -> list[Path]:
    """All checkpoint files, newest first; by outer step, since clocks may jump."""
    found = [p for p in folder.glob("step-*.safetensors") if p.stem[5:].isdecimal()]
    return sorted(found, key=lambda path: int(path.stem[5:]), reverse=True)


def write_checkpoint(folder: Path, checkpoint: Checkpoint) -> Path:
    """Writes a checkpoint, whole or not at all, then removes all but the newest two."""
    path = path_of(folder, checkpoint.state.outer_step)
    files.write_atomically(path, to_bytes(checkpoint), make_folder=False)
    prune(folder, checkpoint.state.outer_step)
    return path


def to_bytes(checkpoint: Checkpoint) -> bytes:
    """The content of a checkpoint's file."""
    state = checkpoint.state
    tensors = _tensors(state)
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise NonFiniteError(
                f"{name} is not finite after outer step {state.outer_step}: nothing was written.",
                "Lower outer_lr or learning_rate in a new run.",
            )
    header = _Header(
        schema_version=SCHEMA_VERSION,
        outer_step=state.outer_step,
        rejected=state.distiller.rejected,
        rejected_in_a_row=state.distiller.rejected_in_a_row,
        norm=state.distiller.norm,
        adam_count=state.distiller.adam.count,
        best=_reached(state.best),
        last=_reached(state.last),
        seconds=state.seconds,
        configuration=checkpoint.config.mapping(),
        engines=state.engines,
        fingerprint=checkpoint.fingerprint,
        log=checkpoint.log,
        snapshots=state.snapshots.outer_steps,
    )
    # Tensors of one memory, such as moments that are both still zero, have no place in the format.
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}
    return encode(tensors, header.model_dump(mode="json"), "checkpoint")


def from_bytes(content: bytes) -> Checkpoint:
    """The checkpoint of another process, from the bytes that it sent."""
    tensors, header = decode(content, "checkpoint", "The state that was sent")
    checked = _Header.model_validate(header)
    return Checkpoint(
        _state(checked, tensors), config_from(checked.configuration), checked.fingerprint
    )


def prune(folder: Path, newest: int) -> None:
    """Removes all but the newest two checkpoints, and what crashed writes left behind.

    Args:
        folder: The folder of the checkpoints.
        newest: The outer step of the checkpoint in use; later ones could not be read
            and were given up.
    """
    found = checkpoints_in(folder)
    old = [path for path in found if int(path.stem[5:]) <= newest][KEPT:]
    later = [path for path in found if int(path.stem[5:]) > newest]
    for path in [*files.leftovers(folder), *old, *later]:
        with files.reporting(path):
            files.remove(path)


def read_checkpoint(path: Path) -> Checkpoint:
    """Reads and checks a checkpoint."""
    tensors, raw_header = read_container(path, "checkpoint")
    try:
        header = _Header.model_validate(raw_header)
        config = config_from(header.configuration)
        state = _state(header, tensors)
        _check_numbers(tensors)
    except (ValidationError, ConfigError, ValueError) as error:
        what = str(error).partition("\n")[0]
        raise ArtefactError(f"{path} is not a valid checkpoint: {what}", "Delete it.") from None
    except KeyError as error:
        raise ArtefactError(
            f"{path} is not a valid checkpoint: it has no tensor {error}.", "Delete it."
        ) from None
    if path.name != path_of(path.parent, header.outer_step).name:
        raise ArtefactError(
            f"{path} is the checkpoint of outer step {header.outer_step}.",
            f"Rename it to {path_of(path.parent, header.outer_step).name}.",
        )
    if header.snapshots and header.snapshots[-1] > header.outer_step:
        raise ArtefactError(f"{path} has snapshots of later outer steps.", "Delete it.")
    return Checkpoint(state, config, header.fingerprint, header.log)


def _check_numbers(tensors: dict[str, Tensor]) -> None:
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            continue
        if tensor.element_size() < 2 or not torch.isfinite(tensor).all():  # float8 has no isfinite
            raise ValueError(f"{name} is not finite")


def newest(folder: Path) -> tuple[Checkpoint, list[str]]:
    """The newest valid checkpoint, and why newer ones were skipped."""
    skipped: list[str] = []
    for path in checkpoints_in(folder):
        try:
            return read_checkpoint(path), skipped
        except ArtefactError as error:
            if isinstance(error.__cause__, OSError):  # it may be whole, and would be removed
                raise RunError(
                    error.what, "Check the disk; or delete it to resume from the one before."
                ) from error
            skipped.append(error.what)
    raise RunError(
        f"{folder.parent} has no valid checkpoint" + (": " + " ".join(skipped) if skipped else "."),
        "The run cannot be resumed. Start a new one.",
    )


def check_like(state: RunState, fresh: DistillerState, distilled: Steps) -> None:
    """Refuses a state whose tensors do not match the configuration."""
    fits = _shapes(_tensors(RunState(state.distiller))) == _shapes(_tensors(RunState(fresh)))
    best = state.best
    if best is not None:
        fits &= _shapes(best.steps.tensors) == _shapes(distilled.tensors)
        fits &= _shapes(fresh.parameters).items() >= _shapes(best.stored).items()
    fits &= state.snapshots.are_of(distilled.inputs)
    if not fits:
        raise RunError(
            "The shapes of the checkpoint's tensors do not match its configuration.",
            "The file has been changed. Start a new run.",
        )


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, tuple[torch.Size, torch.dtype]]:
    return {name: (tensor.shape, tensor.dtype) for name, tensor in tensors.items()}


def _tensors(state: RunState) -> dict[str, Tensor]:
    distiller, shots = state.distiller, state.snapshots
    trees = {
        "parameters": distiller.parameters,
        "constants": distiller.constants,
        "adam_first": distiller.adam.first,
        "adam_second": distiller.adam.second,
        "average": distiller.average,
        "pool": distiller.pool,
        "best": state.best.steps.tensors if state.best else {},
        "last": state.last.steps.tensors if state.last else {},
        "best_stored": state.best.stored if state.best else {},
        "last_stored": state.last.stored if state.last else {},
        "snapshots": {"pictures": shots.pictures} if shots.outer_steps else {},
    }
    return {f"{tree}/{name}": t for tree, named in trees.items() for name, t in named.items()}


def _reached(measured: Measured | None) -> _Reached | None:
    return measured and _Reached(outer_step=measured.outer_step, claim=measured.reached)


def _state(header: _Header, tensors: dict[str, Tensor]) -> RunState:
    def tree(prefix: str) -> dict[str, Tensor]:
        return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}

    def measured(name: str, reached: _Reached | None) -> Measured | None:
        if reached is None:
            return None
        named = tree(f"{name}/")
        inputs, labels, rates = (named[field] for field in LEARNED)
        steps = Steps(inputs, labels, rates, named.get(COEFFICIENTS))
        return Measured(reached.outer_step, steps, reached.claim, tree(f"{name}_stored/"))

    distiller = DistillerState(
        outer_step=header.outer_step,
        parameters=tree("parameters/"),
        constants=tree("constants/"),
        adam=AdamState(header.adam_count, tree("adam_first/"), tree("adam_second/")),
        average=tree("average/"),
        pool=tree("pool/"),
        rejected=header.rejected,
        rejected_in_a_row=header.rejected_in_a_row,
        norm=header.norm,
    )
    best, last = measured("best", header.best), measured("last", header.last)
    shots = Snapshots(header.snapshots, **tree("snapshots/"))
    return RunState(distiller, best, last, header.seconds, header.engines, shots)
