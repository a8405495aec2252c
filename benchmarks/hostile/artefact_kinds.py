"""Artefacts for fuzzing: damaged, and changed with a hash that is right again.

The campaign of hostile artefacts changes them with more knowledge, and uses them in every way.
"""

import functools
import shutil
from pathlib import Path

import datadistill as dd

from .checkpoint_kinds import check_same, finished_run, hashed_again
from .kinds import Kind, check_finite

STATES = ("plain", "bases")


def _original(state: str) -> Path:
    return finished_run(state) / "distilled.safetensors"


def _make(state: str, folder: Path) -> Path:
    return Path(shutil.copy(_original(state), folder))


def _use(state: str, path: Path) -> None:
    dd.load(path)
    check_same("artefact", path, _original(state))


def _use_whole(path: Path) -> None:
    """An artefact with a valid hash: loaded and shown."""
    distilled = dd.load(path)
    assert repr(distilled)
    check_finite(distilled.inputs, distilled.labels, distilled.learning_rates)


def _kinds(state: str) -> list[Kind]:
    make = functools.partial(_make, state)
    name = "artefact" if state == "plain" else f"artefact of {state}"
    return [
        Kind(name, make, functools.partial(_use, state)),
        Kind(f"{name}, hashed again", make, _use_whole, hashed_again("artefact")),
    ]


KINDS = tuple(kind for state in STATES for kind in _kinds(state))
