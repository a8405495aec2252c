"""The figures of a part, kept in its run folder: a later call shows them without computing."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ...runs.config import FREE
from ...runs.store.folder import RunFolder
from ...runs.store.results import file_hash, read_results, write_results
from ...version import __version__
from .part import Part
from .result import Cells
from .scale import Scale

SECTION = "reproduced"


@dataclass(frozen=True)
class Figures:
    """What has been measured of a part.

    Attributes:
        cells: By column.
        complete: Whether nothing is missing; the figure of the run is there before its baselines.
    """

    cells: Cells
    complete: bool = True


@dataclass(frozen=True)
class KeptFigures:
    """The figures of a part at a scale, in the ``results.json`` of its run.

    Attributes:
        folder: The run folder.
        part: The part.
        scale: How much is computed.
    """

    folder: RunFolder
    part: Part
    scale: Scale

    def read(self) -> Figures | None:
        """The figures, if they are those of these settings and this artefact."""
        kept = self._section().get(self._key()) if self.folder.distilled.is_file() else None
        try:
            return None if kept is None else _ADAPTER.validate_json(json.dumps(kept))
        except (ValidationError, ValueError, RecursionError):
            return None

    def write(self, cells: Cells, *, complete: bool) -> None:
        """Keeps figures; the other sections of the file stay."""
        kept = {"cells": {c: asdict(cell) for c, cell in cells.items()}, "complete": complete}
        section = {**self._section(), self._key(): kept}
        write_results(self.folder.results, {SECTION: section}, make_folder=False)

    def _section(self) -> dict[str, Any]:
        found = read_results(self.folder.results).get(SECTION)
        return found if isinstance(found, dict) else {}

    def _key(self) -> str:
        """A hash of all that the figures depend on."""
        config = self.part.config(self.scale, None, Path()).mapping()
        depends: dict[str, Any] = {
            "settings": {n: v for n, v in config.items() if n not in FREE or n == "iterations"},
            "artefact": file_hash(self.folder.distilled),
            "measured": [self.part.measured, self.part.column],
            "scale": asdict(self.scale),
            "datadistill": __version__,
        }
        return hashlib.sha256(json.dumps(depends, sort_keys=True).encode()).hexdigest()


_ADAPTER = TypeAdapter(Figures)
