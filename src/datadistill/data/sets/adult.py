"""Adult: 32,561 and 16,281 rows of the 1994 US census; does a person earn more than $50,000?"""

import math
from pathlib import Path

import torch

from ..data_set import DataSet, register
from ..decoding import Category, Column, Decoder, Number, encode_table, table_decoder
from ..folder import find_file
from ..formats.unpack import damaged, read_text
from ..images.conversion import apply_options
from ..labelled import LabelledData
from ..options import Options

NAMES: tuple[str, ...] = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
)
NUMBERS = {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}
HEAVY = {"capital-gain", "capital-loss", "fnlwgt"}  # a few values are a thousand times the others
CLASSES = ("<=50K", ">50K")
FILES = {"train": "adult.data", "test": "adult.test"}
MOST_BYTES = 16 * 2**20
MOST_ROWS = 100_000
MOST_NAMES = 100
MOST_NUMBERS = 400
"""That a row may become: there are 108 in the real ones."""

Cells = dict[str, list[str]]


def load_adult(folder: Path, options: Options) -> tuple[LabelledData, LabelledData]:
    """Reads the two files of the UCI repository.

    Numbers are scaled to mean 0 and standard deviation 1 (of their logarithm, where a few are much
    larger than the others); names are one-hot. A missing value, ``?``, is a name of its own.
    """
    tables = {split: _read(find_file(folder, name)) for split, name in FILES.items()}
    columns = _columns(tables["train"][0], folder / FILES["train"])
    train, test = (
        LabelledData(
            encode_table(columns, [*cells.values()]), labels, None, CLASSES, "adult", split
        )
        for split, (cells, labels) in tables.items()
    )
    return apply_options(train, test, options)


def read_decoder(folder: Path) -> Decoder:
    """How rows are written, by the training file."""
    path = find_file(folder, FILES["train"])
    return table_decoder(_columns(_read(path)[0], path))


def _read(path: Path) -> tuple[Cells, torch.Tensor]:
    """The cells of every column, and the labels."""
    lines = read_text(path, MOST_BYTES).splitlines()
    rows = [line.rstrip(".").split(",") for line in lines if line and not line.startswith("|")]
    if not rows or {len(row) for row in rows} != {len(NAMES) + 1}:
        raise damaged(path, f"does not have {len(NAMES) + 1} columns in every line")
    if len(rows) > MOST_ROWS:
        raise damaged(path, f"has {len(rows):,} rows, more than {MOST_ROWS:,}")
    *columns, labels = ([cell.strip() for cell in column] for column in zip(*rows, strict=True))
    cells = dict(zip(NAMES, columns, strict=True))
    if unknown := sorted({*labels} - {*CLASSES}):
        raise damaged(path, f"has {unknown[0][:20]!r} for a label, not {' or '.join(CLASSES)}")
    for name in NUMBERS:
        if not all(_is_number(cell) for cell in cells[name]):
            raise damaged(path, f"has something else than numbers from 0 in its column {name}")
    return cells, torch.tensor([CLASSES.index(label) for label in labels])


def _is_number(cell: str) -> bool:
    return cell.isdecimal() and cell.isascii() and len(cell) < 10


def _columns(cells: Cells, path: Path) -> list[Column]:
    """How each column is encoded, by the training data."""
    columns: list[Column] = []
    for name, own in cells.items():
        if name in NUMBERS:
            values = torch.tensor([float(cell) for cell in own], dtype=torch.float64)
            values = values.log1p() if name in HEAVY else values
            std = float(values.std(correction=0))
            columns.append(Number(name, float(values.mean()), std or 1.0, name in HEAVY))
        else:
            names = tuple(sorted({*own}))
            if len(names) > MOST_NAMES or max(map(len, names)) > MOST_NAMES:
                raise damaged(path, f"has too many or too long names in its column {name}")
            columns.append(Category(name, names))
    assert all(math.isfinite(column.mean) for column in columns if isinstance(column, Number))
    if sum(column.width for column in columns) > MOST_NUMBERS:
        raise damaged(path, "has too many names in all")
    return columns


DATA_SET = register(
    DataSet(
        name="adult",
        what="Adult (census income): 32,561 + 16,281 rows of 14 columns, two classes",
        input_shape=(108,),
        classes=2,
        folder="adult",
        files=tuple((name,) for name in FILES.values()),
        origin="https://archive.ics.uci.edu/dataset/2/adult",
        canonical=True,
        licence="CC BY 4.0",
        loader=load_adult,
        decoder=read_decoder,
        order=110,
    )
)
