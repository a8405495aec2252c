"""Real data as an artefact means them: its normalization, its classes in its order."""

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from .. import data
from ..core.objective import Objective
from ..data import LabelledData, Normalization, as_data
from ..data.labels import as_classes, in_order_of
from ..data.normalizing import has_pixels
from ..data.running_statistics import BATCH
from ..errors import DataWarning
from .header import Header


class Artefact(Protocol):
    """What is needed of a :class:`DistilledData`."""

    @property
    def header(self) -> Header:
        """Its header."""
        ...

    @property
    def inputs(self) -> Tensor:
        """The distilled inputs."""
        ...

    @property
    def normalization(self) -> Normalization | None:
        """How real inputs are normalised."""
        ...


def real_data(
    distilled: Artefact,
    source: Any,
    split: str = "test",
    *,
    input_shape: tuple[int, ...] = (),
    has_classes: bool | None = None,
) -> LabelledData:
    """Converts real data for networks that distilled data train.

    Pixels are normalised with the artefact's own statistics, whatever form they come in. Classes
    are numbered as in the artefact, by their names.

    Args:
        distilled: The artefact.
        source: Real data in any form of :func:`as_data`, or a name or path for
            :func:`datadistill.data.load`.
        split: Which split of data by name; the name of the split, for data without one.
        input_shape: The shape of one distilled input, to which data by name are resized.
        has_classes: Whether labels are classes; by default as the artefact's objective says.
    """
    header, norm = distilled.header, distilled.normalization
    if isinstance(source, str | Path):
        shape = image_shape(input_shape)
        train, test = data.load(source, normalization=norm, **shape)
        source = train if split == "train" else test
    real = as_data(source, split, normalization=norm)
    if has_classes is None:
        has_classes = Objective.from_record(header.objective).has_classes
    if has_classes:
        real = in_order_of(header.class_names, as_classes(real))
    return _normalized(real, norm)


def statistics_data(distilled: Artefact, given: Any) -> Any:
    """Converts the data that running statistics are measured on, as :func:`real_data` does.

    Args:
        distilled: The artefact.
        given: Real data in any form, or None or ``"batch"``, which stay as they are.
    """
    if given is None or (isinstance(given, str) and given == BATCH):
        return given
    shape = distilled.inputs.shape[2:]
    return real_data(distilled, given, "train", input_shape=shape, has_classes=False)


def image_shape(input_shape: tuple[int, ...]) -> dict[str, Any]:
    """Size and channels to load images with, so that they have a shape; empty if it cannot be."""
    match input_shape:
        case (1 | 3 as channels, height, width) if height == width:
            return {"size": height, "channels": channels}
        case _:
            return {}


def _normalized(real: LabelledData, norm: Normalization | None) -> LabelledData:
    """The same data with the artefact's normalization, if they are pixels of its channels."""
    own = real.normalization
    if own == norm or not (has_pixels(real) or own):
        return real
    if norm is None:
        warnings.warn(
            f"The distilled data were made from inputs that were used unchanged; the pixels of "
            f"{real.name} are normalised with mean {own and own.mean} and std {own and own.std}.",
            DataWarning,
            stacklevel=4,
        )
        return real
    if len(norm.mean) != real.input_shape[0]:
        return real  # inputs of another shape, which are refused in words of their own
    return replace(real, normalization=norm)
