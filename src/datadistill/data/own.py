"""Your own data: arrays, tensors, torch and Hugging Face data sets, and tables."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from ..errors import DataDistillError, DataError
from .columns import from_columns
from .inputs import as_inputs, warn_unscaled
from .labelled import LabelledData
from .labels import Names, encode
from .normalization import Normalization

NAME = "own data"
REMEDY = (
    "Pass a pair (inputs, labels) of arrays, a torch or Hugging Face data set, or a pandas "
    "DataFrame; load a folder or file with dd.data.load(path)."
)


def as_data(
    source: Any,
    split: str = "train",
    *,
    name: str | None = None,
    normalization: Normalization | None = None,
) -> LabelledData:
    """Converts real data from the forms that users have them in.

    Args:
        source: :class:`LabelledData`; a pair (inputs, labels) of tensors, arrays or lists; a torch
            ``Dataset`` of (input, label) pairs, pictures included; a Hugging Face data set; a
            pandas ``DataFrame``; or a mapping of columns. Bytes are pixels. Floats are used
            unchanged. String labels are the names of classes.
        split: The name of the split, for data without one.
        name: The name of the data in results.
        normalization: Mean and standard deviation for bytes, e.g. those of the training data;
            measured on these images by default.
    """
    if isinstance(source, LabelledData):
        return source
    name = name or NAME
    where = f"The {split} split of {name}"
    inputs, labels, names = _read(source, where)
    if inputs.ndim < 2 or len(inputs) != len(labels) or not len(inputs):
        return LabelledData(inputs, labels, name=name, split=split)  # says what is wrong
    warn_unscaled(inputs, where)
    if inputs.dtype == torch.uint8 and inputs.ndim == 4:
        normalization = normalization or Normalization.measured(inputs)
    else:
        normalization = None
    return LabelledData(inputs, labels, normalization, names, name, split)


def _read(source: Any, where: str) -> tuple[torch.Tensor, torch.Tensor, Names]:
    if isinstance(source, list) and _are_items(source):
        return _items(source, where)
    if isinstance(source, tuple | list):
        return _pair(source, where)
    if isinstance(source, DataLoader):
        raise DataError("A DataLoader is not a data set.", "Pass its data set: loader.dataset.")
    if isinstance(source, Mapping):
        return _mapping(source, where)
    if hasattr(source, "features") and hasattr(source, "column_names"):
        return _hugging_face(source, where)
    if hasattr(source, "columns") and hasattr(source, "to_numpy"):
        return from_columns({name: source[name] for name in source.columns}, where)
    if isinstance(source, Dataset):
        return _items(source, where)
    raise DataError(f"{type(source).__name__} is not a data set.", REMEDY)


def _are_items(source: list[Any]) -> bool:
    """Whether a list is a data set of (input, label) pairs, and not itself a pair."""
    pairs = (isinstance(one, Mapping) or _is_pair(one) for one in source)
    return len(source) > 2 and all(pairs)


def _is_pair(item: object) -> bool:
    return isinstance(item, tuple) and len(item) == 2


def _pair(source: Any, where: str) -> tuple[torch.Tensor, torch.Tensor, Names]:
    if len(source) != 2:
        raise DataError(
            f"A {type(source).__name__} of {len(source)} items is not a pair (inputs, labels).",
            "Pass two arrays; test data have an argument of their own.",
        )
    labels, names = encode(source[1], where)
    return as_inputs(source[0], where), labels, names


def _mapping(source: Mapping[Any, Any], where: str) -> tuple[torch.Tensor, torch.Tensor, Names]:
    """Columns by name; a mapping of splits is refused, since only one is asked for."""
    if splits := [key for key in source if key in ("train", "test", "validation")]:
        raise DataError(
            f"{type(source).__name__} holds several splits: {', '.join(map(str, source))}.",
            f"Pass one of them: data[{splits[0]!r}].",
        )
    return from_columns({str(key): values for key, values in source.items()}, where)


def _hugging_face(source: Any, where: str) -> tuple[torch.Tensor, torch.Tensor, Names]:
    """A data set of the package ``datasets``; its ClassLabel names the classes."""
    features: Mapping[str, Any] = source.features or {}
    classes = {name: one.names for name, one in features.items() if hasattr(one, "names")}
    label, names = next(iter(classes.items())) if len(classes) == 1 else (None, None)
    columns: dict[str, Any] = dict(_columns([*source], where))
    for name, one in features.items():
        if hasattr(one, "shape") and hasattr(one, "dtype"):  # arrays, which come as lists
            columns[name] = np.asarray(columns[name], one.dtype)
    return from_columns(columns, where, label, tuple(names) if names else None)


def _items(source: Any, where: str) -> tuple[torch.Tensor, torch.Tensor, Names]:
    """A torch data set of (input, label) pairs, or of mappings; ``classes`` names the classes."""
    items: list[Any] = []
    # Data sets with only __getitem__ and __len__ do not end a plain for loop.
    try:
        length = len(source) if hasattr(source, "__len__") else None
        for item in source if length is None else (source[i] for i in range(length)):
            items.append(item)
    except DataDistillError:
        raise
    except Exception as error:
        raise DataError(
            f"Item {len(items)} of the data set cannot be read: {type(error).__name__}: {error}",
            "Correct the data set.",
        ) from error
    if not items:
        return torch.empty(0, 1), torch.empty(0), None
    if isinstance(items[0], Mapping):
        return from_columns(_columns(items, where), where)
    for number, item in enumerate(items):
        if not isinstance(item, tuple | list) or len(item) != 2:
            raise DataError(
                f"Item {number} of the data set is not a pair (input, label) but "
                f"{type(item).__name__}.",
                "Return an input (tensor, array or picture) and its label.",
            )
    known = getattr(source, "classes", None)
    named = isinstance(known, tuple | list) and all(isinstance(name, str) for name in known)
    labels, names = encode(_together([label for _, label in items], where), where)
    if names is None and named and known and not labels.is_floating_point():
        names = tuple(known) if int(labels.max()) < len(known) else None
    return as_inputs([pixels for pixels, _ in items], where), labels, names


def _together(labels: list[Any], where: str) -> Any:
    """Labels of single examples as one array or list."""
    if all(isinstance(label, torch.Tensor) for label in labels):
        return torch.stack(labels) if len({label.shape for label in labels}) == 1 else labels
    if any(label is None for label in labels):
        raise DataError(
            f"{where} has examples without a label.", "Provide a label for every input."
        )
    return labels


def _columns(rows: list[Any], where: str) -> dict[str, list[Any]]:
    """The columns of rows that are mappings with the same keys."""
    if not rows:
        raise DataError(f"{where} is empty.", "Provide at least one example of every class.")
    if any(not isinstance(row, Mapping) or row.keys() != rows[0].keys() for row in rows):
        raise DataError(
            f"{where} has rows with different columns.", "Return the same columns in every row."
        )
    return {str(name): [row[name] for row in rows] for name in rows[0]}
