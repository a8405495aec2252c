"""Finished parts of long evaluations, saved in ``results.json`` one by one."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from ..core.update import UpdateRule
from ..files import remove_leftovers
from ..runs.store.results import read_results, write_results

SECTION = "baselines"
PARTS = "parts"

Unit = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
T = TypeVar("T")


@dataclass(frozen=True)
class ResultCache:
    """Finished parts, by everything that determines them.

    Attributes:
        path: The ``results.json`` in which parts are saved; None keeps them in memory only.
        context: What all parts depend on, e.g. hashes of the data.
        known: The parts, by the hash of what determines each.
        section: The section of the file in which they are.
    """

    path: Path | None
    context: Mapping[str, object]
    known: dict[str, Any] = field(default_factory=dict[str, Any])
    section: str = SECTION

    @classmethod
    def read(
        cls, path: Path | None, context: Mapping[str, object], section: str = SECTION
    ) -> "ResultCache":
        """Reads the parts of earlier calls; invalid ones are computed again."""
        if path:
            remove_leftovers(path)
        found = read_results(path).get(section) if path else None
        known = found.get(PARTS) if isinstance(found, dict) else None
        return cls(path, context, dict(known) if isinstance(known, dict) else {}, section)

    def get(
        self,
        key: Mapping[str, object],
        compute: Callable[[], T],
        shape: TypeAdapter[T],
        count: int | None = None,
    ) -> T:
        """Returns a part from the cache, or computes and saves it.

        Args:
            key: What determines the part, beside the context; plain JSON.
            compute: Computes the part.
            shape: The type of a valid part; any other is computed again.
            count: The number of entries, if the part is a list.
        """
        digest = _digest({"context": self.context, "part": key})
        kept = self.known.get(digest)
        if isinstance(kept, dict) and "value" in kept:
            try:
                value = shape.validate_json(json.dumps(kept["value"]), strict=True)
                if count is None or (isinstance(value, list | tuple) and len(value) == count):
                    return value
            except (ValidationError, ValueError, RecursionError):
                pass
        value = compute()
        self.known[digest] = {"part": key, "value": json.loads(shape.dump_json(value))}
        self.write({PARTS: self.known})
        return value

    def write(self, section: Mapping[str, object]) -> None:
        """Updates our section of the file; the other sections stay."""
        if self.path is None:
            return
        own = read_results(self.path).get(self.section)
        kept = own if isinstance(own, dict) else {}
        write_results(self.path, {self.section: {**kept, **section}})


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def rule_key(rule: UpdateRule) -> dict[str, object]:
    """What parts depend on of an update rule, as they did when momentum was all there was."""
    record = rule.record()
    if record["name"] in ("gradient-descent", "momentum"):
        return {"momentum": record.get("momentum", 0.0)}
    return {"rule": record}
