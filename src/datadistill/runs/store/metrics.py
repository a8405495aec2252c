"""``metrics.jsonl``: the figures of every outer step of a run, one line each.

Every line carries a checksum of itself and of the line before, so that a changed, a missing and
an inserted line are all found. A last line that a crash left half-written is dropped.
"""

import contextlib
import json
import zlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch import Tensor

from ...artefact import Claim
from ...errors import RunError
from ...files import Appended, appending
from ...reading import read_regular

Figure = Annotated[float, Field(allow_inf_nan=False)]
CHECK = "check"


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LearningRates(_Record):
    """A summary of the distilled learning rates."""

    min: Figure
    mean: Figure
    max: Figure

    @classmethod
    def of(cls, rates: Tensor) -> "LearningRates":
        """The summary of learning rates (epochs, steps)."""
        rates = rates.double()
        return cls(min=float(rates.min()), mean=float(rates.mean()), max=float(rates.max()))


class HeldOutScore(_Record):
    """What networks trained on the distilled data reach on held-out training data."""

    metric: str
    mean: Figure
    std: Figure
    networks: int

    @classmethod
    def of(cls, claim: Claim) -> "HeldOutScore":
        """The score that a measurement claims."""
        return cls(metric=claim.metric, mean=claim.mean, std=claim.std, networks=claim.networks)


class MetricsRow(_Record):
    """One outer step.

    Attributes:
        outer_step: Its number, from 1.
        loss: Mean outer loss of its networks; None if it was not finite.
        gradient_norm: Length of the outer gradient; None if it was not finite.
        outer_lr: The outer learning rate it was made with.
        learning_rates: The distilled learning rates after it.
        rejected: How many outer steps were rejected so far, this one included.
        held_out: The measurement made after it, if one was due.
        seconds: How long it took.
    """

    outer_step: Annotated[int, Field(ge=1)]
    loss: Figure | None
    gradient_norm: Figure | None
    outer_lr: Figure
    learning_rates: LearningRates
    rejected: Annotated[int, Field(ge=0)]
    held_out: HeldOutScore | None = None
    seconds: Figure


@dataclass
class MetricsLog:
    """Appends rows to a file.

    Attributes:
        check: The checksum of the last row; empty if there is none.
    """

    _file: Appended
    check: str

    def append(self, row: MetricsRow) -> None:
        """Writes one line, in one call, so that other processes can follow."""
        values = _values(row)
        self.check = _chained(self.check, values)
        self._file.append((json.dumps({**values, CHECK: self.check}) + "\n").encode())

    def sync(self) -> None:
        """Waits until all rows are on the disk."""
        self._file.sync()


@contextlib.contextmanager
def logging_to(path: Path, after: int, known: str = "") -> Generator[MetricsLog]:
    """Opens the log of a run at an outer step; rows of later ones are cut off.

    They are of steps that were made after the last checkpoint, and will be made again.

    Args:
        path: The log.
        after: The outer step.
        known: The checksum of its row, if the checkpoint holds it.
    """
    end, check = 0, ""
    if after and path.exists():
        for line, row in _lines(path):
            if row.outer_step > after:
                break
            end, check = line.end, line.check
            if row.outer_step == after:
                break
        else:
            raise RunError(
                f"{path} ends before outer step {after}, from which the run resumes.",
                "Restore it, or delete it: a new log starts there.",
            )
        if known and check != known:
            raise RunError(
                f"{path} is the log of another run: its row of outer step {after} is not the one "
                "that the checkpoint knows.",
                "Put back the run's own files, or delete it: a new log starts there.",
            )
    with appending(path, end) as file:
        yield MetricsLog(file, check)


def read_metrics(path: Path) -> list[MetricsRow]:
    """Reads all rows; a last line that is only half there is left out."""
    return [row for _, row in _lines(path)]


@dataclass(frozen=True)
class _Line:
    end: int
    check: str


def _lines(path: Path) -> Iterator[tuple[_Line, MetricsRow]]:
    try:
        content = read_regular(path)
    except OSError as error:
        raise RunError(
            f"{path} cannot be read: {error.strerror or error}.", "Check the path."
        ) from error
    check, end, previous = "", 0, None
    for number, text in enumerate(content.split(b"\n")[:-1], start=1):
        end += len(text) + 1
        try:
            values: dict[str, Any] = json.loads(text)
            claimed = values.pop(CHECK)
            row = MetricsRow.model_validate(values)
            check = _chained(check, _values(row))
            if claimed != check or (previous is not None and row.outer_step != previous + 1):
                raise ValueError
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, ValidationError):
            raise RunError(
                f"{path} is damaged in line {number}.",
                "Restore it, or delete it: a new log starts where the run resumes.",
            ) from None
        previous = row.outer_step
        yield _Line(end, check), row


def _values(row: MetricsRow) -> dict[str, Any]:
    return row.model_dump(exclude=None if row.held_out else {"held_out"})


def _chained(previous: str, values: dict[str, Any]) -> str:
    text = previous + json.dumps(values, sort_keys=True)
    return f"{zlib.crc32(text.encode()):08x}"
