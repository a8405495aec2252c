"""Makes a table or figure of the paper again: distils, measures, and lists what differs."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...artefact import DistilledData
from ...artefact import load as load_distilled
from ...baselines.paper import FIGURES, TEST_EXAMPLES, Figure, PaperSetting
from ...data import LabelledData
from ...data import load as load_data
from ...errors import ConfigError, DataDistillError, did_you_mean
from ...evaluation.poisoning import victims_of
from ...evaluation.result import ClassScore
from ...given import typed
from ...progress import ProgressCallback
from ...runs.experiment import Experiment
from ...runs.resuming import as_planned
from ...showing import shown, teller
from ..baseline import baseline_table
from ..context import TableSettings
from ..poisoning import poisoning_table
from ..rows import TableRow
from .catalogue import RESULTS
from .kept import Figures, KeptFigures
from .part import Part, differences, scale_differences
from .result import Cell, Cells, Reproduced
from .scale import SCALES, ScaleName
from .workshop import ENDED, OutOfTimeError, Workshop

ATTACKS = {
    "mnist-poisoning": Figure(71.4, 29.6),
    "cifar10-poisoning": Figure(45.9, 18.1),
}
"""The share of the attacked class that the paper turns."""


@typed
def reproduce(
    name: str,
    folder: str | Path,
    *,
    scale: ScaleName = "quick",
    data_dir: str | Path | None = None,
    seconds: float | None = None,
    progress: bool | ProgressCallback = False,
) -> Reproduced:
    """Makes a table or figure of the paper: runs what is missing, resumes what was broken off.

    Example::

        print(dd.reproduce("mnist-cifar", "reproduced").markdown())

    Args:
        name: ``mnist-cifar``, ``adaptation``, ``imagenet``, ``poisoning``, ``steps``, ``epochs``,
            ``one-vs-many`` or ``learning-rate``.
        folder: For runs and pools; the same folder again continues.
        scale: How much is computed: ``quick`` or ``paper``.
        data_dir: The data folder; ``$DATADISTILL_DATA`` or the user's cache by default.
        seconds: A time budget; runs that are not begun are planned for it.
        progress: True for bars and messages, or a callback.
    """
    until = None if seconds is None else time.monotonic() + seconds
    place = None if data_dir is None else Path(data_dir).absolute()
    with shown(progress) as show:
        tell = teller(progress)
        workshop = Workshop(Path(folder), SCALES[scale], place, until, tell=tell, progress=show)
        return make_result(name, workshop)


def make_result(name: str, workshop: Workshop) -> Reproduced:
    """Makes a table or figure.

    A part that cannot be made, e.g. for want of its data, is noted, and the others go on.

    Args:
        name: One of ``RESULTS``.
        workshop: Where its runs and pools are, and how much is computed.
    """
    if name not in RESULTS:
        raise ConfigError(
            f"There is no result {name!r}.{did_you_mean(name, RESULTS)}",
            f"Choose one of: {', '.join(RESULTS)}.",
        )
    result, begin = RESULTS[name], (time.monotonic(), time.process_time())
    scale, parts = workshop.scale, result.parts(workshop.scale)
    made = Reproduced(name, result.title, scale.name, result.columns, result.kind, result.said)
    called = {part.row: part.row_at(scale) for part in parts}
    for number, part in enumerate(parts):
        row = made.rows.setdefault(part.row, {})
        row |= _paper_cells(part, result.columns)
        try:
            found = _make(part, workshop, len(parts) - number)
        except (OutOfTimeError, DataDistillError) as error:
            first, *_ = error.what.split(". ", 1)  # of missing data: not every file
            made.notes.append(f"{part.row_at(scale)}, {part.column}: {first.rstrip('.')}")
            workshop.tell(f"{part.run}: {error.what}")
            continue
        for column, cell in found.cells.items():
            paper = row.get(column, Cell()).paper
            row[column] = Cell(cell.mean, cell.std, cell.networks, paper)
        if not found.complete:
            made.notes.append(f"{part.row_at(scale)}, baselines: {ENDED}")
        called[part.row] = _describe(made, part, workshop)
    _name_rows(made, called)
    numbers = scale_differences(scale, SCALES["paper"], parts, result.columns)
    made.differences |= {one: [] for one in numbers}
    made.seconds, made.cpu_seconds = (
        time.monotonic() - begin[0],
        time.process_time() - begin[1],
    )
    return made


def _make(part: Part, workshop: Workshop, parts_left: int) -> Figures:
    """The figures of a part: those that are kept, or else it is distilled and measured."""
    kept = KeptFigures(workshop.run_folder(part), part, workshop.scale)
    if (found := kept.read()) and found.complete:
        return found
    try:
        one = _Measured(part, *workshop.distil(part, parts_left), workshop)
        if part.measured == "baselines":  # which take longer
            kept.write(_figure(one), complete=False)
        kept.write(cells := MEASURES[part.measured](one), complete=True)
        return Figures(cells)
    except OutOfTimeError:
        if found := kept.read():
            return found
        raise


@dataclass(frozen=True)
class _Measured:
    """A part that has been distilled, and is to be measured."""

    part: Part
    distilled: DistilledData
    loaded: Experiment
    workshop: Workshop

    @property
    def results(self) -> Path:
        return self.workshop.run_folder(self.part).results


def _figure(one: _Measured) -> Cells:
    """The figure that a run has measured at its end."""
    claim = one.distilled.claim
    assert claim is not None
    std = 100 * claim.std if claim.networks > 1 else None
    return {one.part.column: Cell(100 * claim.mean, std, claim.networks)}


def _baselines(one: _Measured) -> Cells:
    """The figure of a run, and those of all baselines and references."""
    scale, loaded = one.workshop.scale, one.loaded
    fixed = one.distilled.initialization.fixed
    table = baseline_table(
        one.distilled,
        loaded.train,
        loaded.test,
        settings=TableSettings(networks=1 if fixed else scale.networks, counts=scale.counts),
        source=_source(one),
        results=one.results,
        progress=one.workshop.within,
    )
    return {**{row.name: _cell(row) for row in table.rows}, **_figure(one)}


def _attack(one: _Measured) -> Cells:
    """What an attack turns, what it leaves, and what real images turn."""
    scale, loaded = one.workshop.scale, one.loaded
    victims = victims_of(
        one.distilled, loaded.test, networks=scale.networks, progress=one.workshop.within
    )
    attack, rows = poisoning_table(
        one.distilled.steps,
        loaded.train,
        victims,
        counts=scale.counts,
        results=one.results,
        progress=one.workshop.within,
    )
    after = attack.after
    scores = {one.part.column: after.success}
    scores |= {"modified labels": after.modified, "other classes": after.others}
    scores |= {row.name: row.figures.success for row in rows if row.name != "distilled"}
    return {column: _score_cell(score) for column, score in scores.items()}


MEASURES = {"figure": _figure, "baselines": _baselines, "attack": _attack}


def _source(one: _Measured) -> LabelledData | None:
    """The training data of the networks of a pool that were trained on other data."""
    pool, config = one.distilled.pool, one.loaded.config
    if pool is None or pool.origin.data.name == config.data:
        return None
    name, (channels, height, _) = pool.origin.data.name, one.loaded.train.input_shape
    source, _ = load_data(name, config.data_dir, size=height, channels=1 if channels == 1 else 3)
    return one.workshop.some(source)


def _cell(row: TableRow) -> Cell:
    std = None if row.std is None else 100 * row.std
    return Cell(100 * row.mean, std, row.networks)


def _score_cell(score: ClassScore) -> Cell:
    return Cell(100 * score.mean, 100 * score.std, len(score.values))


def _paper_cells(part: Part, columns: Sequence[str]) -> Cells:
    """The paper's figures for the columns that a part fills."""
    if attacked := ATTACKS.get(part.recipe):
        return {part.column: Cell(paper=attacked)}
    config, pool = part.paper(), part.pool
    if config.learn_rates is False or columns == ("learned", "fixed 0.01"):
        return {}
    if part.measured == "figure" and len(columns) == 1:
        return {}
    images = config.steps * (config.images_per_class or 1) * CLASSES.get(config.data, 10)
    source = pool.data if pool else None
    setting = PaperSetting(config.data, config.model, images, config.initialization, source)
    known = FIGURES.get(setting, {})
    wanted = {part.column: "distilled"}
    if part.measured == "baselines":
        wanted |= {column: column for column in columns if column != part.column}
    return {column: Cell(paper=known[name]) for column, name in wanted.items() if name in known}


CLASSES = {"voc2007": 20, "cub200": 200}


def _describe(made: Reproduced, part: Part, workshop: Workshop) -> str:
    """Notes what a row really is, and which settings differ from the paper's.

    Returns:
        What the row is called: by its own data, should they stand in for the paper's.
    """
    if part.run not in made.runs:
        made.runs.append(part.run)
    folder = workshop.run_folder(part)
    distilled = load_distilled(folder.distilled)
    config = as_planned(part.config(workshop.scale, None, workshop.folder), folder)
    header, claim = distilled.header, distilled.claim
    pool = header.initialization.pool
    networks, tested = (claim.networks, claim.examples) if claim else (0, 0)
    if claim and claim.seed not in made.seeds:
        made.seeds.append(claim.seed)
    made.names[part.row] = (
        f"{header.data}, {header.architecture.name}"
        + (f", pool {pool.name} of {pool.networks} networks" if pool else "")
        + f"; {networks} network{'' if networks == 1 else 's'}, tested on {tested:,} examples"
    )
    for one in differences(config, part.paper()):
        runs = made.differences.setdefault(one, [])
        if part.run not in runs:
            runs.append(part.run)
    all_examples = TEST_EXAMPLES.get(header.data, (tested,))
    subset = "" if tested in all_examples else f" ({tested:,} of {all_examples[0]:,} test examples)"
    return f"{part.row_at(workshop.scale)}{subset}"


def _name_rows(made: Reproduced, called: dict[str, str]) -> None:
    """Renames the rows of the paper as they are called here."""
    made.paper_rows = {called[row]: row for row in made.rows if called[row] != row}
    made.rows = {called[row]: cells for row, cells in made.rows.items()}
    made.names = {called[row]: what for row, what in made.names.items()}
