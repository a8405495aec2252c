"""What a report measures itself: accuracy after every update, and confusion of classes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch import nn

from .. import data
from ..artefact import DistilledData
from ..artefact.real_data import image_shape, real_data
from ..data import LabelledData
from ..errors import ConfigError, DataDistillError
from ..evaluation import learning_curve
from ..evaluation.confusion import confusion
from ..evaluation.learners import check_inputs
from ..pools import at_most
from ..progress import ProgressCallback
from ..runs.config import RunConfig
from ..runs.experiment import check_findable, names_code, unnamed_code
from ..runs.store.folder import RunFolder
from ..runs.store.results import file_hash, read_results, write_results

SECTION = "report"
NETWORKS = 10
"""Networks that a report trains where the initialization is random."""
POINTS = 60
"""Updates after which they are tested, at most: the first and the last, and some between."""

Share = Annotated[float, Field(allow_inf_nan=False)]
Counts = list[list[Annotated[int, Field(ge=0)]]]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Point(_Record):
    """The metric of all networks after some updates."""

    updates: Annotated[int, Field(ge=0)]
    mean: Share
    std: Share


class Measured(_Record):
    """What was measured of an artefact, and what with.

    Attributes:
        sha256: The hash of the artefact's file.
        data: The data set.
        split: Which part of it.
        examples: How many examples of it.
        networks: How many networks.
        seed: Which.
        metric: What the curve shows.
        curve: The metric after some updates.
        before: The confusion matrix of all networks before training; none without classes.
        after: The same after training.
    """

    sha256: str
    data: str
    split: str
    examples: int
    networks: int
    seed: int
    metric: str
    curve: list[Point]
    before: Counts = []
    after: Counts = []


def known(results: Path, artefact: Path) -> Measured | None:
    """What was measured before of an artefact; None if nothing was."""
    try:
        found = Measured.model_validate(read_results(results).get(SECTION))
    except ValidationError:
        return None
    square = all(len(m) == len(row) for m in (found.before, found.after) for row in m)
    same = len(found.before) == len(found.after)
    return found if found.sha256 == file_hash(artefact) and square and same else None


def measure(
    artefact: Path,
    results: Path,
    distilled: DistilledData,
    test: LabelledData,
    *,
    networks: int | None = None,
    module: nn.Module | None = None,
    device: str = "auto",
    progress: ProgressCallback,
) -> Measured:
    """Measures an artefact, and saves what is found beside its other figures.

    Args:
        artefact: Its file.
        results: The ``results.json`` that belongs to it.
        distilled: What is in the file, with the pool that it needs.
        test: The real data to test on.
        networks: How many networks; 1 for a fixed initialization, 10 for others by default.
        module: The network, where it is not built in.
        device: Where to compute.
        progress: Called along the way.
    """
    initialization = distilled.initialization
    if networks is None:
        networks = 1 if initialization.fixed else at_most(initialization, NETWORKS)
    given: dict[str, Any] = {"networks": networks, "module": module, "device": device}
    after = _some(len(distilled.steps.schedule))
    curve = learning_curve(distilled, test, after=after, **given, progress=progress)
    matrices: dict[str, Counts] = {}
    if distilled.objective.has_classes:
        found = confusion(distilled, test, **given, progress=progress)
        matrices = dict(zip(("before", "after"), (one.tolist() for one in found), strict=True))
    last = curve[-1]
    measured = Measured(
        sha256=file_hash(artefact),
        data=last.data,
        split=last.split,
        examples=last.examples,
        networks=networks,
        seed=last.seed,
        metric=last.metric,
        curve=[Point(updates=c.updates or 0, mean=c.mean, std=c.std) for c in curve],
        **matrices,
    )
    write_results(results, {SECTION: measured.model_dump(mode="json")})
    return measured


def real_test(
    folder: RunFolder, config: RunConfig, distilled: DistilledData, data_dir: Path | None = None
) -> LabelledData:
    """The test data that a run's configuration names.

    Raises:
        DataDistillError: They are not at hand, or only code that nobody has named has them.
    """
    where = str(folder.config)
    check_findable(config, where)
    if names_code("data", config.data):
        raise unnamed_code(where, "data", config.data)
    _, test = data.load(
        config.data,
        data_dir or config.data_dir,
        normalization=distilled.normalization,
        **image_shape(distilled.inputs.shape[2:]),
    )
    test = real_data(distilled, test, test.split)
    check_inputs(distilled.inputs.shape[2:], test)
    return test


def with_pool(distilled: DistilledData, named: Path | None, moved: Path | None) -> DistilledData:
    """The distilled data with the pool that they need.

    Args:
        distilled: The distilled data.
        named: The pool that the run's configuration names.
        moved: The pool that the user names.
    """
    place = moved or named
    if place is None or not place.is_dir():
        raise ConfigError(f"The pool {place} is not there.", "Name it: --pool DIR")
    return distilled.with_pool(place)


def reason(error: DataDistillError) -> str:
    """Why something was not measured, in one line."""
    return f"{error.what} {error.remedy}".strip()


def _some(updates: int) -> Sequence[int]:
    """All numbers of updates up to a last one, or some that are evenly spaced."""
    if updates < POINTS:
        return range(updates + 1)
    return sorted({round(updates * place / (POINTS - 1)) for place in range(POINTS)})
