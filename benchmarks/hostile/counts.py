"""What a campaign of hostile files counted."""

from __future__ import annotations

from dataclasses import dataclass, field, fields


@dataclass
class Counts:
    """The outcomes of a campaign.

    Attributes:
        tried: Files that were made and used.
        refused: Files that ended in a typed error.
        used: Files that were used to the end without an error.
        unwritten: Files that the campaign could not write, and so did not use.
        untyped: Files that ended in any other error, or killed the process.
        silent: Files whose change passed without a word although it should not.
        not_finite: Files that gave a result that is not finite.
        over_memory: Files that took more memory than the campaign allows.
        over_time: Files that took longer than the campaign allows.
        details: One line for each file that failed, with what repeats it.
    """

    tried: int = 0
    refused: int = 0
    used: int = 0
    unwritten: int = 0
    untyped: int = 0
    silent: int = 0
    not_finite: int = 0
    over_memory: int = 0
    over_time: int = 0
    details: list[str] = field(default_factory=list[str])

    @property
    def failed(self) -> int:
        """How many outcomes break a promise; 0 for a campaign that passes."""
        return self.untyped + self.silent + self.not_finite + self.over_memory + self.over_time

    def add(self, other: Counts) -> None:
        """Adds the outcomes of ``other`` to these."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))

    def __str__(self) -> str:
        named = [one.name for one in fields(self) if one.name != "details"]
        return ", ".join(f"{name.replace('_', ' ')} {getattr(self, name):,}" for name in named)
