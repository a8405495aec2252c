"""Data in named columns: pandas tables, Hugging Face data sets, CSV files, rows as mappings."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from ..errors import DataError
from .inputs import as_inputs
from .labels import Names, encode

LABELS = ("label", "labels", "target", "class", "y")
INPUTS = ("image", "img", "images", "pixel_values", "input", "inputs", "input_ids")


def from_columns(
    columns: Mapping[str, Any],
    where: str,
    label: str | None = None,
    names: Names = None,
) -> tuple[Tensor, Tensor, Names]:
    """Returns the inputs, labels and class names of data in named columns.

    Args:
        columns: The values of each column.
        where: Whose columns, for error messages.
        label: The column of the labels; by default the one called ``label`` or similar.
        names: The names of the classes, where they are known.
    """
    label = label or label_column([*columns], where)
    labels, names = encode(columns[label], where, names)
    others = {name: values for name, values in columns.items() if name != label}
    if not others:
        raise DataError(f"{where} has no column but {label!r}.", "Add the inputs.")
    known = [name for name in others if str(name).lower() in INPUTS]
    if len(known) == 1 or len(others) == 1:
        chosen = known[0] if known else next(iter(others))
        inputs = as_inputs(others[chosen], where)
        return (inputs if inputs.ndim > 1 else inputs[:, None].double()), labels, names
    return as_inputs(_side_by_side(others, where), where), labels, names


def label_column(names: Sequence[str], where: str) -> str:
    """Returns the one column that holds the labels, by its name."""
    found = [name for name in names if str(name).lower() in LABELS]
    if len(found) == 1:
        return found[0]
    shown = ", ".join(map(str, names[:8])) + (", …" if len(names) > 8 else "")
    raise DataError(
        f"{where} has {len(found) or 'no'} columns for labels among {shown}.",
        "Name one column 'label', or pass a pair (inputs, labels).",
    )


def _side_by_side(columns: Mapping[str, Any], where: str) -> np.ndarray:
    """Columns of numbers as one array (examples, columns)."""
    table: list[np.ndarray] = []
    for name, values in columns.items():
        try:
            column = np.asarray(values)
            numbers = column.astype(np.float64) if column.dtype.kind in "biufO" else None
        except (TypeError, ValueError):
            column, numbers = np.empty(0), None
        if numbers is None or column.ndim != 1:
            raise DataError(
                f"The column {name!r} of {where[0].lower()}{where[1:]} does not hold numbers.",
                "Encode it as numbers or drop it; keep one column if it is the input.",
            )
        table.append(numbers)
    return np.stack(table, 1)
