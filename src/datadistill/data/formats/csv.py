"""Columns of numbers in a .csv file."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ...errors import DataError
from ...reading import open_regular
from ..columns import label_column
from ..images.conversion import apply_options
from ..inputs import warn_unscaled
from ..labelled import LabelledData
from ..labels import Names, encode
from ..options import Options

TEST_SHARE = 0.2
SPLIT = "split"
LONGEST = 1000
"""Characters of a cell, at most."""


def load_csv(path: Path, options: Options) -> tuple[LabelledData, LabelledData]:
    """Reads a table: one example a row, its columns named in the first line.

    The column ``label`` (or ``target``, ``class``, ``y``) holds the labels: integers, names of
    classes, or decimal numbers for regression. A column ``split`` says which rows are ``train``
    and which are ``test``; without one, a fifth of each class is used for testing. All other
    columns are inputs, and must hold numbers.
    """
    names, rows = _read(path)
    where = str(path)
    label = names.index(label_column(names, where))
    split = next((n for n, name in enumerate(names) if name.lower() == SPLIT), None)
    columns = [n for n in range(len(names)) if n not in (label, split)]
    if not columns:
        raise DataError(f"{path} has no columns of inputs.", "Add columns of numbers.")
    inputs = torch.from_numpy(_numbers(path, names, columns, rows))
    warn_unscaled(inputs, where)
    labels, class_names = _labels([row[label] for row in rows], where)
    everything = LabelledData(inputs, labels, None, class_names, path.stem)
    if split is None:
        train, test = everything.hold_out(TEST_SHARE, options.seed)
        return apply_options(train, replace(test, split="test"), options)
    parts = np.array([row[split].strip().lower() for row in rows])
    if unknown := sorted({*parts.tolist()} - {"train", "test"}):
        raise DataError(
            f"{path} has {unknown[0]!r} in the column {names[split]!r}.", "Use train and test."
        )
    found = {part: torch.from_numpy(np.flatnonzero(parts == part)) for part in ("train", "test")}
    for part, numbers in found.items():
        if not len(numbers):
            raise DataError(f"{path} has no rows for {part}.", f"Add rows, or drop {SPLIT!r}.")
    train, test = (everything.part(numbers, part) for part, numbers in found.items())
    return apply_options(train, test, options)


def _read(path: Path) -> tuple[list[str], list[list[str]]]:
    """The names of the columns, and the cells of every other line that is not empty."""
    remedy = "Write a table with commas: names in the first line, then one example a line."
    try:
        with io.TextIOWrapper(open_regular(path), newline="", encoding="utf-8-sig") as file:
            lines = [line for line in csv.reader(file) if line]
    except (OSError, UnicodeError, csv.Error) as error:
        why = getattr(error, "strerror", None) or error
        raise DataError(f"{path} cannot be read: {why}.", remedy) from error
    if len(lines) < 2:
        raise DataError(f"{path} has no examples.", remedy)
    names = [name.strip() for name in lines[0]]
    for number, line in enumerate(lines[1:], 2):
        if len(line) != len(names):
            raise DataError(
                f"{path} has {len(line)} of {len(names)} cells in row {number}.",
                remedy,
            )
        # NumPy gives every cell of an array the room of the longest.
        if max(map(len, line)) > LONGEST:
            raise DataError(
                f"{path} has a cell of more than {LONGEST:,} characters in row {number}.", remedy
            )
    return names, lines[1:]


def _numbers(path: Path, names: list[str], columns: list[int], rows: list[list[str]]) -> np.ndarray:
    try:
        return np.array([[row[n] for n in columns] for row in rows]).astype(np.float64)
    except ValueError:
        for number, row in enumerate(rows, 2):
            for n in columns:
                if not _is_number(row[n]):
                    raise DataError(
                        f"{path} has {row[n]!r} in row {number} of the column {names[n]!r}.",
                        "Inputs must be numbers: encode categories, fill in what is missing.",
                    ) from None
        raise


def _labels(cells: list[str], where: str) -> tuple[Tensor, Names]:
    """Integers as class indices, decimal numbers as targets, and all else as names of classes."""
    cells = [cell.strip() for cell in cells]
    if not all(cells):
        raise DataError(f"{where} has no label in row {cells.index('') + 2}.", "Fill it in.")
    for kind in (np.int64, np.float64):
        try:
            return encode(np.array(cells).astype(kind), where)
        except ValueError:
            continue
    return encode(cells, where)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
