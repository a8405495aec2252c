"""A table or figure of the paper as it was made again."""

from dataclasses import asdict, dataclass, field
from typing import Any

from ...baselines.paper import Figure


@dataclass(frozen=True)
class Cell:
    """One figure: ours, and the paper's.

    Attributes:
        mean: Ours, in percent; None if it was not measured.
        std: Its standard deviation over networks, and over sets of images.
        networks: How many networks.
        paper: The paper's, if it prints one.
    """

    mean: float | None = None
    std: float | None = None
    networks: int = 0
    paper: Figure | None = None

    @property
    def ours(self) -> str:
        """Our figure as text."""
        if self.mean is None:
            return "–"
        return f"{self.mean:.1f}" + ("" if self.std is None else f" ± {self.std:.1f}")


Cells = dict[str, Cell]
"""Cells by column."""
Curve = dict[float, Cell]
"""Cells by their place on the axis."""


@dataclass
class Reproduced:
    """A table or figure: rows of cells by column, and how it was measured.

    Attributes:
        name: Which.
        title: What it shows.
        scale: How much was computed.
        columns: The columns of a table; of a figure, what is on its axis.
        kind: Whether it is a table or a figure.
        said: What the paper says where it prints no values.
        rows: Cells by row and column.
        paper_rows: What the paper's row is called, where other data stand in for its own.
        names: What each row's data and networks really are.
        runs: The runs of which it is made.
        seeds: The seeds of the networks that were tested.
        notes: What is missing, by row.
        differences: Settings that differ from the paper's, with the runs that differ so.
        seconds: How long it took this time.
        cpu_seconds: Processor time of this process, likewise.
    """

    name: str
    title: str
    scale: str
    columns: tuple[str, ...]
    kind: str
    said: str = ""
    rows: dict[str, Cells] = field(default_factory=dict[str, Cells])
    paper_rows: dict[str, str] = field(default_factory=dict[str, str])
    names: dict[str, str] = field(default_factory=dict[str, str])
    runs: list[str] = field(default_factory=list[str])
    seeds: list[int] = field(default_factory=list[int])
    notes: list[str] = field(default_factory=list[str])
    differences: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    @property
    def shown_columns(self) -> list[str]:
        """The columns, or the places on the axis that some curve has."""
        if self.kind == "table":
            return list(self.columns)
        places = {column for row in self.rows.values() for column in row}
        return sorted(places, key=float)

    @property
    def curves(self) -> dict[str, Curve]:
        """The measured cells of a figure, by their place on the axis."""
        return {
            row: {float(place): cell for place, cell in cells.items() if cell.mean is not None}
            for row, cells in self.rows.items()
        }

    def as_json(self) -> dict[str, Any]:
        """Everything, in the types of JSON."""
        rows = {
            row: {column: asdict(cell) for column, cell in cells.items()}
            for row, cells in self.rows.items()
        }
        return {**asdict(self), "columns": list(self.columns), "rows": rows}

    def markdown(self) -> str:
        """The table in the paper's layout, with the paper's figures below ours."""
        lines = [f"## {self.title}", "", *self._table(), ""]
        lines += [f"- {row}: {what}" for row, what in self.names.items()]
        if self.said:
            lines.append(f"- The paper: {self.said}")
        if self.scale == "quick":
            lines.append("- Quick scale: this proves the pipeline, not the method.")
        lines += [f"- Not measured: {note}" for note in self.notes]
        if self.differences:
            lines += ["", "Settings that differ from the paper's (the paper's → ours):", ""]
            lines += [f"- {name}: {'; '.join(all_)}" for name, all_ in self._by_setting().items()]
        return "\n".join([*lines, ""])

    def _by_setting(self) -> dict[str, list[str]]:
        """What every setting is, and in which runs if not in all."""
        found: dict[str, list[str]] = {}
        for one, runs in self.differences.items():
            name, _, change = one.partition(": ")
            everywhere = not runs or len(runs) == len(self.runs)
            where = "" if everywhere else f" ({', '.join(runs)})"
            found.setdefault(name, []).append(f"{change}{where}")
        return found

    def _table(self) -> list[str]:
        columns = self.shown_columns
        head = "" if self.kind == "table" else self.columns[0]
        lines = [f"| {head} | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
        for row, cells in self.rows.items():
            ours = [cells.get(column, Cell()).ours for column in columns]
            lines.append(f"| {row} | {' | '.join(ours)} |")
            paper = [cells.get(column, Cell()).paper for column in columns]
            if any(paper):
                shown = (str(figure) if figure else "" for figure in paper)
                theirs = self.paper_rows.get(row, row)
                lines.append(f"| {theirs}, the paper | {' | '.join(shown)} |")
        return lines
