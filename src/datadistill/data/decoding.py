"""Showing inputs that are not images as text: rows of a table, or words."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from ..core.values import one_line

Row = tuple[str, ...]
LARGEST = 1e15  # distilled numbers may be far from real ones


@dataclass(frozen=True)
class Decoder:
    """How the inputs of a data set are written as text.

    Attributes:
        columns: The titles of the columns.
        rows: (examples, …) normalised inputs → one row of text for each.
    """

    columns: Row
    rows: Callable[[Tensor], list[Row]]

    __repr__ = one_line


ReadDecoder = Callable[[Path], Decoder]
"""Reads what decoding needs from the folder of a data set."""


class Number(NamedTuple):
    """A column of numbers, scaled to mean 0 and standard deviation 1.

    Attributes:
        name: Its title.
        mean: The mean of the training data.
        std: Their standard deviation.
        log: Whether log(1 + x) is scaled, not x itself.
    """

    name: str
    mean: float
    std: float
    log: bool = False

    width = 1

    def encode(self, cells: Sequence[str]) -> Tensor:
        """The scaled numbers, (examples, 1)."""
        values = torch.tensor([float(cell) for cell in cells], dtype=torch.float64)
        return ((values.log1p() if self.log else values) - self.mean)[:, None] / self.std

    def decode(self, values: Tensor) -> list[str]:
        """The numbers themselves, rounded."""
        found = values[:, 0].double() * self.std + self.mean
        found = (found.expm1() if self.log else found).clamp(-LARGEST, LARGEST)
        return [str(round(value)) for value in found.tolist()]


class Category(NamedTuple):
    """A column of names, one-hot.

    Attributes:
        name: Its title.
        names: The names that occur in the training data.
    """

    name: str
    names: tuple[str, ...]

    @property
    def width(self) -> int:
        """How many numbers it takes."""
        return len(self.names)

    def encode(self, cells: Sequence[str]) -> Tensor:
        """(examples, names); a name that is not known is 0 everywhere."""
        known = {name: n for n, name in enumerate(self.names)}
        table = torch.zeros(len(cells), len(self.names), dtype=torch.float64)
        for row, cell in enumerate(cells):
            if cell in known:
                table[row, known[cell]] = 1
        return table

    def decode(self, values: Tensor) -> list[str]:
        """The name with the largest number."""
        return [self.names[n] for n in values.argmax(1).tolist()]


Column = Number | Category


def encode_table(columns: Sequence[Column], cells: Sequence[Sequence[str]]) -> Tensor:
    """Columns of text as numbers, (examples, numbers) in float32."""
    encoded = [column.encode(own) for column, own in zip(columns, cells, strict=True)]
    return torch.cat(encoded, 1).float()


def table_decoder(columns: Sequence[Column]) -> Decoder:
    """Writes encoded rows as the table has them."""

    def rows(inputs: Tensor) -> list[Row]:
        parts = inputs.detach().cpu().split([column.width for column in columns], 1)
        decoded = [column.decode(part) for column, part in zip(columns, parts, strict=True)]
        return [*zip(*decoded, strict=True)]

    return Decoder(tuple(column.name for column in columns), rows)


def word_decoder(words: Sequence[str], vectors: Tensor) -> Decoder:
    """Writes sequences of vectors, (examples, 1, words, dimensions), as their nearest words.

    The nearest word is the one with the largest cosine.
    """
    unit = torch.nn.functional.normalize(vectors.double(), dim=1)

    def rows(inputs: Tensor) -> list[Row]:
        found: list[Row] = []
        for sequence in inputs.detach().cpu().double().flatten(1, 2):
            cosines = torch.nn.functional.normalize(sequence, dim=1) @ unit.T
            nearest: list[int] = cosines.argmax(1).tolist()
            found.append((" ".join([words[n] for n in nearest]),))
        return found

    return Decoder(("nearest words",), rows)
