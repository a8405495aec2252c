"""Commands that write, small enough to be run thousands of times in one process."""

import contextlib
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter

import datadistill as dd
from benchmarks.power_loss.disk import Tree
from datadistill.data.normalizing import normalized_with
from datadistill.engine import ALONE
from datadistill.files import reporting
from datadistill.pools.pretraining import Pretraining
from datadistill.pools.settings import PoolSettings
from datadistill.progress import Progress
from datadistill.runs.config import config_from
from datadistill.runs.distillation import Distillation
from datadistill.runs.preparation import prepare
from datadistill.runs.run import Run
from datadistill.runs.store.checkpoint import Checkpoint, to_bytes
from datadistill.runs.store.folder import RunFolder
from datadistill.runs.store.metrics import MetricsRow
from datadistill.runs.store.results import write_results
from datadistill.runs.store.state import RunState
from datadistill.tables.result_cache import ResultCache

PART = TypeAdapter(list[float])
ITERATIONS, MORE = 4, 6


@dataclass(frozen=True)
class Command:
    """A command and what must come of it.

    Attributes:
        name: Its name.
        run: Runs it in a folder; a second time it goes on where the first was broken off.
        prepare: Puts into the folder what it begins with.
        finished: Which files, once they have their name and it is synced, are never lost: by a
            part of their names.
    """

    name: str
    run: Callable[[Path], Any]
    prepare: Callable[[Path], Any] = lambda _folder: None
    finished: str = ""


def contents(tree: Tree) -> dict[str, Any]:
    """What must be the same, whatever happened: all but times and who held a lock."""
    return {name: _without_times(name, content) for name, content in tree.items() if content}


def _without_times(name: str, content: bytes) -> Any:
    if name.endswith(".lock"):
        return None
    if name.endswith(".jsonl"):
        rows = map(json.loads, content.splitlines())
        return [{k: v for k, v in row.items() if k not in ("seconds", "check")} for row in rows]
    if "checkpoints/" in name:  # it holds the time spent
        return None
    return content


_KNOWN: dict[str, tuple[RunState, MetricsRow]] = {}


@dataclass(frozen=True)
class Remembering(Distillation):
    """A distillation that makes no outer step twice from the same bytes of a state."""

    def advance(self, state: RunState) -> tuple[RunState, MetricsRow]:
        """Makes an outer step, unless it is known."""
        same_time = Checkpoint(replace(state, seconds=0.0), self.config, {})
        key = hashlib.sha256(to_bytes(same_time)).hexdigest()
        if key not in _KNOWN:
            _KNOWN[key] = super().advance(state)
        return _KNOWN[key]


KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "bases": {
        **{"parametrisation": "bases", "bases": 2, "normalization": "zca", "view": "shift"},
        **{"labels": "soft", "inner_batch": 1, "averaging": 0.9, "clip_factor": 3.0},
    },
    "ridge": {"initialization": "random", "adjoint": "ridge-head", "labels": "logits"},
}
"""Settings that bring state of their own into checkpoints and artefacts."""


def _data(kind: str) -> dd.LabelledData:
    inputs = torch.randn(40, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    if kind != "bases":
        return dd.LabelledData(inputs, torch.arange(40) % 2, name="clouds")
    bright = (255 * inputs.sigmoid()).byte()
    pixels = dd.LabelledData(bright, torch.arange(40) % 2, name="clouds")
    return normalized_with("zca", pixels, pixels)[0]


@cache
def _distillation(iterations: int, kind: str = "plain") -> Distillation:
    data = _data(kind)
    settings: dict[str, Any] = {
        **{"data": data.name, "model": "linear", "initialization": "fixed", "keep": "best"},
        **{"steps": 1, "epochs": 1, "networks": 1, "batch_size": 8, "iterations": iterations},
        **{"validate_every": 2, "checkpoint_every": 1, "validation": 0.2, "test_networks": 1},
        **{"outer_schedule": "periods", "threads": 1, "engine": "plain"},
        **KINDS[kind],
    }
    module = dd.models.Linear(channels=1, size=4, classes=2)
    plain = prepare(config_from(settings), data, module)
    return Remembering(**{one.name: getattr(plain, one.name) for one in fields(plain)})


def _run(
    folder: Path, iterations: int = ITERATIONS, stop: int | None = None, kind: str = "plain"
) -> None:
    def progress(told: Progress) -> None:
        if told.stage == "distilling" and told.done == stop:
            raise KeyboardInterrupt

    distillation = _distillation(iterations, kind)
    Run(distillation, RunFolder(folder / "runs/small"), progress=progress).go()


def _stopped(folder: Path, kind: str = "plain") -> None:
    """A run that was killed after outer step 3, which it had no time to save."""
    with contextlib.suppress(KeyboardInterrupt):
        _run(folder, stop=3, kind=kind)


def _resuming(kind: str) -> Command:
    """A run with state of its own that is resumed."""
    return Command(
        f"resume {kind}",
        lambda folder: _run(folder, kind=kind),
        lambda folder: _stopped(folder, kind),
        finished="checkpoints/step-",
    )


@cache
def _pretraining() -> Pretraining:
    settings = PoolSettings(epochs=1, batch_size=20, lr=0.01)
    data = _distillation(ITERATIONS).data
    module = dd.models.Linear(channels=1, size=4, classes=2)
    return Pretraining.prepare(Path("pool"), data, module, settings)


def _pretrain(folder: Path) -> None:
    work = _pretraining()
    place = replace(work.folder, path=folder / "pools/small")
    # One file of networks for each part, and the second part in two.
    for held_out in (1, 2):
        replace(work, folder=place).lead({"train": 2, "held-out": held_out}, ALONE, None)


def _artefact(folder: Path) -> None:
    (folder / "mine").mkdir()
    (folder / "mine" / "photo.png").write_bytes(b"a user's own")
    (folder / "mine" / ".notes.of.mine").write_bytes(b"a user's own")


def _evaluate(folder: Path) -> None:
    path = folder / "mine" / "digits.results.json"
    known = ResultCache.read(path, {"artefact": "digits"})
    for number in range(3):
        known.get({"set": number}, lambda number=number: [number / 3], PART, 1)
    known.write({"table": {"rows": 3}})
    write_results(path, {"poisoning": {"after": 0.5}}, indent=1)


def _save(folder: Path) -> None:
    distillation = _distillation(ITERATIONS)
    distillation.last(distillation.start()).save(folder / "new" / "place" / "mine.safetensors")


def _export(folder: Path) -> None:
    made = folder / "new" / "exported"
    with reporting(made):  # this look is the campaign's own
        is_whole = made.exists()
    if not is_whole:
        distillation = _distillation(ITERATIONS)
        dd.export(distillation.last(distillation.start()), made, "dd-ranking")


COMMANDS = (
    Command("distil", _run, finished="checkpoints/step-"),
    Command("resume", _run, _stopped, finished="checkpoints/step-"),
    Command("extend", lambda folder: _run(folder, MORE), _run, finished="checkpoints/step-"),
    _resuming("bases"),
    _resuming("ridge"),
    Command("pretrain", _pretrain, finished=".safetensors"),
    Command("evaluate", _evaluate, _artefact, finished=".results.json"),
    Command("save", _save, finished=".safetensors"),
    Command("export", _export, finished="exported"),
)
