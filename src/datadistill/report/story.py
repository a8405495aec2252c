"""A run as a report tells it: everything that its files say, checked."""

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..artefact import DistilledData, load
from ..artefact.published import published
from ..artefact.reader import artefact_at
from ..errors import DataDistillError, RunError
from ..pixels import are_images, pictures_of
from ..runs.config import RunConfig
from ..runs.store.checkpoint import newest
from ..runs.store.folder import RunFolder
from ..runs.store.metrics import MetricsRow, read_metrics
from ..runs.store.results import check_artefact, read_results
from ..runs.store.snapshots import Snapshots, shrunk
from ..runs.store.state import RunState
from ..runs.store.yaml_files import read_config
from .decoded import Decoded
from .measuring import Measured, known

TRIES, PAUSE = 5, 0.2  # a run at work replaces its files
Finite = Annotated[float, Field(allow_inf_nan=False)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Score(_Section):
    """A mean over networks and its standard deviation."""

    name: str = ""
    mean: Finite
    std: Finite | None = None


class BaselineRow(_Section):
    """A row of the baseline table."""

    mean: Finite
    std: Finite | None
    sets: int
    networks: int
    chosen: str = ""
    paper_percent: list[Finite | None] | None = None


class Baselines(_Section):
    """The baseline table of ``results.json``."""

    rows: dict[str, BaselineRow]
    data: str
    test_examples: int
    train_examples: int | None = None
    select: str


class Figures(_Section):
    """Networks before or after an attack."""

    success: Score
    modified: Score
    others: Score
    by_class: list[Score] = []


class AttackRow(_Section):
    """An attack by other images, or against a defence."""

    name: str
    figures: Figures


class Attack(_Section):
    """The section of ``results.json`` about poisoning."""

    attacked: int
    target: int
    networks: int
    data: str
    split: str
    seed: int
    before: Figures
    after: Figures
    baselines: list[AttackRow] = []
    defences: list[AttackRow] = []


S = TypeVar("S", bound=_Section)


@dataclass(frozen=True)
class Story:
    """What is known of a run or of an artefact alone.

    Attributes:
        path: The run folder, or the artefact.
        distilled: The distilled data; None until the run has made them.
        config: The settings; None for an artefact alone.
        rows: The log.
        snapshots: The images along the run.
        seconds: Time spent on outer steps; None if it is not known.
        finished: Whether all outer steps are made.
        measured: What reports have measured.
        baselines: The baseline table, if it was made.
        attack: What poisoning does, if it was evaluated.
        text: The distilled data as text, if they are no images.
        notes: What is missing on the page, and why.
    """

    path: Path
    distilled: DistilledData | None
    config: RunConfig | None = None
    rows: tuple[MetricsRow, ...] = ()
    snapshots: Snapshots = field(default_factory=Snapshots)
    seconds: float | None = None
    finished: bool = True
    measured: Measured | None = None
    baselines: Baselines | None = None
    attack: Attack | None = None
    text: Decoded | None = None
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What the run is called: its folder."""
        return self.path.resolve().name

    @property
    def outer_steps(self) -> int:
        """How many outer steps are logged."""
        return self.rows[-1].outer_step if self.rows else 0

    def noting(self, note: str) -> "Story":
        """The same with one more note."""
        return replace(self, notes=(*self.notes, note))

    @classmethod
    def of(cls, path: Path, state: RunState | None = None) -> "Story":
        """Reads a run folder, whether its run is finished or not, or an artefact alone.

        Args:
            path: The run folder, or the artefact.
            state: The state of the run, if it is known; by default that of its last checkpoint.
        """
        if not path.exists() and published(path) is None:
            raise RunError(f"There is no {path}.", "Name a run folder, or an artefact.")
        if not path.is_dir():
            artefact, results = results_at(path)
            return cls(path, load(artefact)).with_results(read_results(results), artefact, results)
        folder = RunFolder(path)
        if folder.is_new:
            raise RunError(f"There is no run in {path.absolute()}.", "Name the folder of a run.")
        folder.check()
        return cls._of_run(folder, state or _saved(folder))

    @classmethod
    def _of_run(cls, folder: RunFolder, saved: RunState | None) -> "Story":
        config, results = read_config(folder.config), folder.read_results()
        rows = tuple(read_metrics(folder.metrics)) if folder.metrics.exists() else ()
        written: Any = results.get("run")
        done = written.get("outer_steps") if isinstance(written, dict) else None
        finished = isinstance(done, int) and done >= config.iterations
        distilled = None
        if folder.distilled.is_file() and done is not None:
            check_artefact(folder.distilled, folder.results)
            distilled = load(folder.distilled)
        story = cls(
            folder.path,
            distilled,
            config,
            rows,
            saved.snapshots if saved else Snapshots(),
            saved.seconds if saved else sum(row.seconds for row in rows),
            finished,
        )
        if saved is None:
            story = story.noting("There is no checkpoint: how the images came to be is not known.")
        if finished and folder.last.is_file():
            story = story._with_last(load(folder.last))
        return story.with_results(results, folder.distilled, folder.results)

    def _with_last(self, last: DistilledData) -> "Story":
        """The same with the images after the last outer step as the last snapshot."""
        step, shots = last.header.configuration["outer_step"], self.snapshots
        if (
            not shots.outer_steps
            or step <= shots.outer_steps[-1]
            or not are_images(last.inputs.shape[2:])
        ):
            return self
        picture = pictures_of(shrunk(last.images))
        if picture.shape != shots.pictures.shape[1:]:
            return self
        return replace(self, snapshots=shots.followed(step, picture))

    def with_results(self, sections: dict[str, Any], artefact: Path, results: Path) -> "Story":
        """The same with the sections of a ``results.json``.

        Args:
            sections: What is in the file.
            artefact: The artefact that it is about.
            results: The file.
        """
        if self.distilled is None:
            return self
        table = sections.get("baselines")
        table = table.get("table") if isinstance(table, dict) else None
        return replace(
            self,
            measured=known(results, artefact),
            baselines=_section(Baselines, table),
            attack=_section(Attack, sections.get("poisoning")),
        )


def results_at(path: Path) -> tuple[Path, Path]:
    """The artefact of a run folder or of itself, and its ``results.json``."""
    results = RunFolder(path).results if path.is_dir() else path.with_suffix(".results.json")
    return artefact_at(path), results


def _section(kind: type[S], value: Any) -> S | None:
    try:
        return kind.model_validate(value)
    except ValidationError:
        return None  # it was not measured, or not by us


def _saved(folder: RunFolder) -> RunState | None:
    """The state of the newest checkpoint, which a run may be replacing; None if there is none."""
    for _ in range(TRIES):
        try:
            return newest(folder.checkpoints)[0].state
        except DataDistillError:
            time.sleep(PAUSE)
    return None
