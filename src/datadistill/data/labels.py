"""Labels in the forms that users have them in, and the order of the classes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import DataError
from .dense import check_dense, shared
from .labelled import LabelledData

Names = tuple[str, ...] | None
"""The names of the classes, where they have any."""


def encode(values: Any, where: str, names: Names = None) -> tuple[Tensor, Names]:
    """Turns labels into class indices, or floats, and returns the names of the classes.

    Integers are class indices. Strings are names of classes, which are numbered in alphabetical
    order. Integers or booleans (examples, classes) are one-hot labels. Floats stay as they are.

    Args:
        values: Labels of all examples: a tensor, an array, a pandas Series or a list.
        where: Whose labels, for error messages.
        names: The names of the classes, where they are known.
    """
    labels = _array(values, where)
    if labels.ndim == 0:
        raise DataError(f"{where} has a single value for labels.", "Provide one for every input.")
    if not len(labels):
        raise DataError(f"{where} is empty.", "Provide at least one example of every class.")
    if labels.dtype.kind in "US":
        return _numbered(labels.reshape(len(labels), -1), where, names)
    if labels.dtype.kind not in "biuf":
        raise DataError(
            f"{where} has labels of type {labels.dtype}.",
            "Use integers or strings for classes, floating-point numbers for regression.",
        )
    if labels.dtype.kind == "f":
        return shared(labels), names
    whole = shared(labels.astype(np.int64, copy=False))
    if whole.ndim == 2 and whole.shape[1] == 1:
        whole = whole[:, 0]
    if whole.ndim > 1 and not _is_one_hot(whole):
        raise DataError(
            f"{where} has integer labels of shape {tuple(labels.shape)} that are not one-hot.",
            "Provide one class per example: shape (examples,).",
        )
    return (whole if whole.ndim == 1 else whole.argmax(1)), names


def as_classes(data: LabelledData) -> LabelledData:
    """Takes one-hot floats, and floats that are whole numbers, as the classes that they mean."""
    labels = data.labels
    if not labels.is_floating_point() or not bool(torch.isfinite(labels).all()):
        return data
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim == 1 and bool((labels == labels.round()).all()):
        return replace(data, labels=labels.long())
    return replace(data, labels=labels.argmax(1)) if _is_one_hot(labels) else data


def check_several_classes(train: LabelledData) -> None:
    """Refuses training data of a single class."""
    if not train.labels.is_floating_point() and len(train.labels.unique()) == 1:
        raise DataError(
            f"All {len(train):,} training examples of {train.name} have the label "
            f"{_label(train, int(train.labels[0]))}.",
            "Classification needs examples of at least two classes.",
        )


def from_zero(train: LabelledData) -> LabelledData:
    """Takes training labels 1 to K without names as K classes that are called so."""
    labels = train.labels
    if train.class_names or labels.is_floating_point() or int(labels.min()) != 1:
        return train
    last = int(labels.max())
    if last < 2 or len(labels.unique()) != last:
        return train
    names = tuple(str(label) for label in range(1, last + 1))
    return replace(train, labels=labels - 1, class_names=names)


def in_order_of(names: Sequence[str] | None, data: LabelledData) -> LabelledData:
    """Numbers the classes of data as others do: by their names.

    Args:
        names: The names to follow; None leaves the data alone.
        data: Data whose classes have the same names in any order, or some of them. Integer labels
            without names are taken for the names where those are numbers other than 0, 1, ….
    """
    if names is None or data.labels.is_floating_point() or data.class_names == (*names,):
        return data
    own = data.class_names
    if own is None:
        counted = [*names] == [str(number) for number in range(len(names))]
        if counted or not all(name.isdecimal() for name in names):
            return replace(data, class_names=(*names,))
        own = tuple(str(number) for number in range(int(data.labels.max()) + 1))
        used = [own[label] for label in data.labels.unique().tolist()]
    else:
        used = list(own)
    if unknown := [name for name in used if name not in names]:
        raise DataError(
            f"The {data.split} split of {data.name} has the class {unknown[0]!r}, which is not one "
            f"of {_listed(names)}.",
            "Use data of the classes that were distilled, with the same names in any order.",
        )
    places = torch.tensor([names.index(name) if name in names else -1 for name in own])
    present = None
    if data.present is not None:
        present = torch.zeros(len(data), len(names), dtype=data.present.dtype)
        present[:, places] = data.present
    labels = places.to(data.labels.device)[data.labels]
    return replace(data, labels=labels, class_names=(*names,), present=present)


def _array(values: Any, where: str) -> np.ndarray:
    """Labels as an array; strings as strings, also from arrays of objects."""
    check_dense(values)
    if isinstance(values, Tensor):
        return values.detach().cpu().float().numpy() if _odd(values) else values.cpu().numpy()
    if isinstance(values, str | bytes) or values is None:
        raise DataError(f"{where} has {values!r} for labels.", "Provide one label for every input.")
    try:
        found = np.asarray([*values] if isinstance(values, range) else values)
    except (ValueError, TypeError, RuntimeError) as error:
        reason = str(error).partition(". ")[0].rstrip(".")
        raise DataError(
            f"The labels of {where[0].lower()}{where[1:]} are not an array: {reason}.",
            "Provide one integer, string or floating-point number for every input.",
        ) from error
    if found.dtype.kind == "O" and all(isinstance(value, str) for value in found.flat):
        return found.astype(str)
    if found.dtype.kind == "S":
        return np.char.decode(found, "utf-8", "replace")
    return found


def _odd(labels: Tensor) -> bool:
    """Whether NumPy does not know the type, or the tensor is part of a graph."""
    return labels.dtype == torch.bfloat16 or labels.requires_grad


def _numbered(labels: np.ndarray, where: str, names: Names) -> tuple[Tensor, Names]:
    if labels.shape[1] != 1:
        raise DataError(
            f"{where} has {labels.shape[1]} names for each label.", "Provide one class per example."
        )
    used = [str(name) for name in np.unique(labels)]
    names = names or tuple(used)
    if unknown := [name for name in used if name not in names]:
        raise DataError(
            f"{where} has the label {unknown[0]!r}, which is not one of {_listed(names)}.",
            "Correct the label, or add its class.",
        )
    places = {name: number for number, name in enumerate(names)}
    return torch.tensor([places[str(name)] for name in labels[:, 0]]), names


def _is_one_hot(labels: Tensor) -> bool:
    if labels.ndim != 2 or labels.shape[1] < 2:
        return False
    ones = labels == 1
    return bool((ones | (labels == 0)).all()) and bool((ones.sum(1) == 1).all())


def _listed(names: Sequence[str], most: int = 10) -> str:
    shown = ", ".join(names[:most])
    return f"{shown}, … ({len(names)} classes)" if len(names) > most else shown


def _label(data: LabelledData, label: int) -> str:
    return repr(data.class_names[label]) if data.class_names else str(label)
