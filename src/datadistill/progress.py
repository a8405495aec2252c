"""The hook through which every long call tells how far it is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Progress:
    """One report of a long call.

    Attributes:
        stage: What is being done, e.g. ``"distilling"``.
        done: How many units are finished.
        total: How many units there are.
        values: Figures worth showing, e.g. ``{"loss": 0.31}``.
    """

    stage: str
    done: int
    total: int
    values: Mapping[str, float] = field(default_factory=dict[str, float])


ProgressCallback = Callable[[Progress], None]


def silent(progress: Progress) -> None:
    """Ignores all reports: the default of every ``progress`` argument."""
