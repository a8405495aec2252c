"""Curves of accuracy, for the figures of the paper."""

from pathlib import Path

from ..files import replacing
from ..tables.reproduction import Reproduced

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito's, which colour-blind people tell apart."""
MARKS = "os^Dv<"


def draw_curves(made: Reproduced, path: Path) -> None:
    """Writes the curves of a figure with their deviations; the suffix chooses PNG or SVG."""
    import matplotlib as mpl  # slow to import
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context({"font.family": "DejaVu Sans", "font.size": 8, "svg.hashsalt": made.name}):
        figure = Figure(figsize=(5, 3.2), facecolor="white", layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        for number, (row, curve) in enumerate(made.curves.items()):
            places = sorted(curve)
            axes.errorbar(
                places,
                [curve[place].mean or 0.0 for place in places],
                [curve[place].std or 0.0 for place in places],
                label=row,
                color=COLOURS[number % len(COLOURS)],
                marker=MARKS[number % len(MARKS)],
                markersize=4,
                capsize=3,
                linewidth=1.2,
            )
        axes.set_xlabel(made.columns[0])
        axes.set_ylabel("test accuracy, %")
        axes.set_title(f"{made.title} ({made.scale} scale)", fontsize=8)
        axes.grid(alpha=0.3)
        if made.curves:
            axes.legend(frameon=False)
        with replacing(path) as temporary:
            metadata = {"Date": None} if path.suffix == ".svg" else {}
            figure.savefig(temporary, dpi=150, metadata=metadata)
