"""The curves of the paper's figures, made again: in the style of all other charts."""

from pathlib import Path

from ..tables.reproduction import Reproduced
from .charts import Line, LineChart
from .figures import draw_chart


def curves_chart(made: Reproduced) -> LineChart:
    """The curves of a figure, with a band of one standard deviation."""
    lines: list[Line] = []
    for row, curve in made.curves.items():
        places = sorted(curve)
        means = [(curve[place].mean or 0.0) / 100 for place in places]
        deviations = [(curve[place].std or 0.0) / 100 for place in places]
        if places:
            lines.append(Line.banded(row, places, means, deviations, shares=True, dots=True))
    axis = made.columns[0]
    return LineChart(
        made.name, f"Accuracy by {axis}", _caption(made), axis, "test accuracy", lines, percent=True
    )


def draw_curves(made: Reproduced, path: Path) -> None:
    """Writes the curves of a figure, with their caption; the suffix chooses PNG or SVG."""
    draw_chart(curves_chart(made), path)


def _caption(made: Reproduced) -> str:
    """What was measured with: data sets, networks and seeds, each text once."""
    rows: dict[str, list[str]] = {}
    for row, what in made.names.items():
        rows.setdefault(what, []).append(row)
    said = [f"{'; '.join(names)}: {what}." for what, names in rows.items()]
    seeds = ", ".join(map(str, made.seeds))
    scale = "the paper's scale" if made.scale == "paper" else "quick scale, which proves little"
    return f"{' '.join(said)} Seed {seeds}; band: one standard deviation; {scale}."
