"""What trials were made and what they reached, in one file that is always whole."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import RunError
from ...files import write_atomically
from ...reading import read_regular

SIZE_LIMIT = 2**24  # bytes


@dataclass(frozen=True)
class Trial:
    """One run of a search.

    Attributes:
        settings: What it changed in the settings that the search began with.
        reached: Its figure on held-out training data; None if it failed.
        seconds: How long it took.
    """

    settings: dict[str, Any]
    reached: float | None
    seconds: float


def read_trials(path: Path) -> list[Trial]:
    """The trials that are finished, in order."""
    if not path.exists():
        return []
    try:
        return [Trial(**json.loads(line)) for line in read_regular(path, SIZE_LIMIT).splitlines()]
    except (OSError, ValueError, TypeError) as error:
        raise RunError(
            f"{path} cannot be read: {error}.", "Delete it, or choose another folder."
        ) from None


def write_trials(path: Path, trials: list[Trial]) -> None:
    """Replaces the file."""
    lines = [json.dumps(vars(trial), ensure_ascii=False) for trial in trials]
    write_atomically(path, "".join(f"{line}\n" for line in lines).encode())
