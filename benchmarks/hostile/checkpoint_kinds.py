"""Checkpoints of every kind of state: damaged, and changed with a hash that is right again."""

import functools
import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

import torch
from tests.runs.helpers import LABELS, SETTINGS

import datadistill as dd
from datadistill.artefact import container
from datadistill.artefact.container import decode, encode, read_container
from datadistill.data.normalizing import normalized_with
from datadistill.runs.store.checkpoint import check_like, read_checkpoint

from .kinds import Change, Kind, SilentChangeError, check_finite
from .mutation import changed_value
from .run_kinds import another, check_plain_numbers

STATES: dict[str, dict[str, Any]] = {
    "plain": {},
    "bases": {
        **{"parametrisation": "bases", "bases": 3, "labels": "soft", "view": "shift"},
        **{"inner_batch": 1, "clip_factor": 3.0, "normalization": "zca"},
    },
    "ridge": {"adjoint": "ridge-head", "labels": "logits", "shuffle": True},
    "placed": {"adjoint": "truncated", "window": 2, "window_placement": "gradient"},
}
"""Settings by the state that they bring into a checkpoint."""


@functools.cache
def finished_run(state: str) -> Path:
    """A small finished run."""
    path = Path(tempfile.mkdtemp(prefix="hostile-run-"))
    draws = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (60, 1, 8, 8), generator=draws, dtype=torch.uint8)
    data, settings = dd.LabelledData(pixels, LABELS), {**SETTINGS, **STATES[state]}
    if settings.pop("normalization", None):
        data = normalized_with("zca", data, data)[0]
    dd.distill(data, dd.models.Linear(size=8), run=path, **settings)
    return path


def _last(state: str) -> Path:
    return max((finished_run(state) / "checkpoints").iterdir())


def _make(state: str, folder: Path) -> Path:
    shutil.copytree(finished_run(state), folder, dirs_exist_ok=True)
    return folder / "checkpoints" / _last(state).name


def check_same(kind: container.Kind, path: Path, original_path: Path) -> None:
    """Raises an error unless two files hold the same tensors and header."""
    found, original = (read_container(p, kind) for p in (path, original_path))
    same = found[0].keys() == original[0].keys() and all(
        torch.equal(found[0][name], tensor) for name, tensor in original[0].items()
    )
    if not same or found[1] != original[1]:
        raise SilentChangeError


def _use(state: str, path: Path) -> None:
    read_checkpoint(path)
    check_same("checkpoint", path, _last(state))


def _use_whole(state: str, path: Path) -> None:
    """A checkpoint with a valid hash: what resume checks, then its numbers."""
    found, original = read_checkpoint(path), read_checkpoint(_last(state))
    best = original.state.best
    assert best is not None
    check_like(found.state, original.state.distiller, best.steps)
    check_finite(*read_container(path, "checkpoint")[0].values())
    check_plain_numbers(found.config.mapping())


def hashed_again(kind: container.Kind) -> Change:
    """A change of the header or of a tensor, after which the hash is right again."""

    def change(content: bytes, draw: random.Random) -> bytes:
        tensors, header = decode(content, kind, "valid")
        if draw.random() < 0.5:
            header = changed_value(header, draw)
            header = header if isinstance(header, dict) else {"schema_version": header}
        else:
            name = draw.choice(sorted(tensors))
            tensors[name] = another(tensors[name], draw)
        return encode(tensors, header, kind)

    return change


def _kinds(state: str) -> list[Kind]:
    make = functools.partial(_make, state)
    name = "checkpoint" if state == "plain" else f"checkpoint of {state}"
    whole = functools.partial(_use_whole, state)
    return [
        Kind(name, make, functools.partial(_use, state)),
        Kind(f"{name}, hashed again", make, whole, hashed_again("checkpoint")),
    ]


KINDS = tuple(kind for state in STATES for kind in _kinds(state))
