"""The figures in one JSON file, and the tables that are made from them."""

import json
import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from benchmarks.timing import THREADS

RESULTS = Path(__file__).parent / "results.json"
DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "performance.md"
PAGES = (PAGE, DOCS / "beyond.md")
PLACE = re.compile(r"(<!-- benchmarks: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
LIMITS = ("at least", "at most")
SHARE, SHARE_LIMIT = "share of peak, %", "share at least"
GOAL = "goal"
"""A ratio that is aimed at, above what is promised."""

Entry = Mapping[str, Any]
"""What one benchmark found: its ``rows`` and anything else, with the machine it ran on."""


@dataclass
class Results:
    """What all benchmarks found.

    Attributes:
        path: The JSON file.
        entries: By the name of the benchmark.
    """

    path: Path
    entries: dict[str, Entry]

    @classmethod
    def read(cls, path: Path = RESULTS) -> "Results":
        """Reads the file, if it is there."""
        return cls(path, json.loads(path.read_text()) if path.exists() else {})

    def add(self, name: str, figures: Entry, *, quick: bool, on: Entry) -> None:
        """Puts new figures, measured on a machine, in the place of older ones; writes the file."""
        self.entries[name] = {**figures, "quick": quick, "machine": on}
        text = json.dumps(dict(sorted(self.entries.items())), indent=1, ensure_ascii=False)
        self.path.write_text(text + "\n")

    def table(self, name: str) -> str:
        """The figures of a benchmark as Markdown, with where and when they were measured."""
        entry = self.entries[name]
        on = entry["machine"]
        where = f"{on['processor']}, {on['cores']} cores, PyTorch {on['torch']}, {on['date']}"
        how = ", quick setting" if entry["quick"] else ""
        return f"{markdown(rows_of(entry))}\n\n{where}, load before {on['load']:.1f}{how}.\n"

    def missed(self, name: str) -> list[str]:
        """What a benchmark promises and did not find."""
        return [_missed(row) for row in rows_of(self.entries[name]) if not kept(row)]


def rows_of(entry: Entry) -> list[dict[str, Any]]:
    """The rows of a benchmark; where it has none, each of its figures is one."""
    if "rows" in entry:
        return entry["rows"]
    own = {name: value for name, value in entry.items() if name not in ("quick", "machine")}
    return [{"what": name, "value": value} for name, value in own.items()]


def kept(row: Mapping[str, Any]) -> bool:
    """Whether ratio and share of a row are within their limits, if they have any."""
    ratio = row.get("ratio")
    least, most = (row.get(limit) for limit in LIMITS)
    if row.get(SHARE_LIMIT) is not None and row[SHARE] < row[SHARE_LIMIT]:
        return False
    if least is None and most is None:
        return True
    return (
        ratio is not None and (least is None or ratio >= least) and (most is None or ratio <= most)
    )


def markdown(rows: list[dict[str, Any]]) -> str:
    """Rows as a table: their columns in order, then what is promised, and what is aimed at."""
    shown = [_shown(row) for row in rows]
    columns = list(dict.fromkeys(name for row in shown for name in row))
    lines = [columns, ["---"] * len(columns)]
    lines += [[row.get(column, "") for column in columns] for row in shown]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _shown(row: Mapping[str, Any]) -> dict[str, str]:
    hidden = (*LIMITS, SHARE_LIMIT, GOAL, "lower bound")
    shown = {name: _text(row[name]) for name in row if name not in hidden}
    if "ratio" in row and row.get("lower bound"):
        shown["ratio"] = f"> {shown['ratio']}"
    if any(limit in row for limit in LIMITS):
        limits = [f"{name} {row[name]:g}" for name in LIMITS if row.get(name) is not None]
        if SHARE_LIMIT in row:
            limits.append(f"{row[SHARE_LIMIT]:g} % of the peak")
        shown["promised"] = ", ".join(limits) + ("" if kept(row) else " (missed)")
    if GOAL in row:
        reached = row["ratio"] >= row[GOAL]
        shown[GOAL] = f"{row[GOAL]:g}" + ("" if reached else " (not reached)")
    return shown


def _text(value: object) -> str:
    match value:
        case None:
            return "not reached"
        case bool() | str():
            return str(value)
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
        case _:
            return json.dumps(value, ensure_ascii=False)


def _missed(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}: {value}" for name, value in _shown(row).items())


def machine() -> dict[str, Any]:
    """The machine as far as speed depends on it, without its name."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": THREADS,
        "torch": torch.__version__.split("+")[0],
        "date": datetime.now(UTC).date().isoformat(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0,
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.*)", info.read_text()) if info.exists() else None
    return found[1].strip() if found else platform.processor() or platform.machine()


def with_tables(page: str, results: Results) -> str:
    """A page with the tables of the results between its markers."""

    def fill(place: re.Match[str]) -> str:
        begin, name, end = place.groups()
        table = results.table(name) if name in results.entries else "Not measured yet.\n"
        return f"{begin}{table}{end}"

    return PLACE.sub(fill, page)
