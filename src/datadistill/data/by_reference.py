"""A user's own data set: ``package.module:NAME`` or ``path/to/file.py:NAME``."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from ..errors import DataDistillError, DataError
from ..importing import Wanted, functions_of
from .data_set import DataSet
from .images.conversion import apply_options
from .labelled import LabelledData
from .options import Options
from .own import as_data


def load_by_reference(
    reference: str, data_dir: Path, options: Options
) -> tuple[LabelledData, LabelledData]:
    """Imports a data set that is defined in Python, and loads it.

    Args:
        reference: Names a :class:`DataSet`, or a function without arguments that returns the
            training and the test split, each in any form that :func:`as_data` takes.
        data_dir: The data folder.
        options: What to load.
    """
    found = Wanted("data set", "NAME", _data_sets, DataError).import_from(reference)
    if isinstance(found, DataSet):
        return found.load(data_dir, options)
    if not callable(found):
        raise DataError(
            f"{reference!r} is an object of the type {type(found).__name__}.",
            "Name a DataSet, or a function that returns the training and the test data.",
        )
    train, test = _call(found, reference)
    return apply_options(train, test, options, train.augmentation)


def _call(function: Callable[..., object], reference: str) -> tuple[LabelledData, LabelledData]:
    remedy = "Name a function without arguments that returns the training and the test data."
    try:
        inspect.signature(function).bind()
    except (TypeError, ValueError) as error:
        raise DataError(f"{reference!r} cannot be called: {error}.", remedy) from error
    try:
        splits = function()
    except DataDistillError:
        raise
    except Exception as error:
        raise DataError(
            f"{reference!r} failed: {type(error).__name__}: {error}", "Correct the function."
        ) from error
    if not isinstance(splits, tuple | list) or len(cast("list[Any]", splits)) != 2:
        raise DataError(f"{reference!r} returned {type(splits).__name__}, not a pair.", remedy)
    train, test = cast("list[Any]", splits)
    real = as_data(train, "train")
    return real, as_data(test, "test", normalization=real.normalization)


def _data_sets(place: object) -> list[str]:
    members = getattr(place, "__dict__", {}).items()
    return [n for n, v in members if isinstance(v, DataSet)] + functions_of(place)
