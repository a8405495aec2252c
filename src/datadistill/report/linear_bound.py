"""The figure of the linear case: loss after one step against the number of distilled images."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

from ..tables.linear import LinearBound
from .style import BLUE as ENGINE
from .style import INK as THEORY
from .style import SOFT, drawing, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BOUND = "#999999"
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
LEAST = 1e-16  # what is drawn for nothing at all, on a logarithmic axis


def draw_linear_bound(found: LinearBound, path: Path) -> None:
    """Writes the figure with its caption; the suffix chooses PNG, SVG or PDF."""
    caption = (
        f"{found.data}: {found.examples} examples of {found.dimensions} measurements; linear "
        f"regression, one step from {found.starts:,} random θ₀, seed {found.seed}."
    )
    with drawing(4.6, 3.3, layout="constrained") as figure:
        axes = figure.subplots()
        _plot(axes, found)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _place: power_of_ten(value))
        axes.set_xlabel("distilled images M")
        axes.set_ylabel("(loss after one step − least loss) / least loss")
        axes.legend(loc="lower left")
        figure.supxlabel(caption, fontsize=6, color=SOFT, x=0.02, ha="left")
        save(figure, path, caption=caption)


def power_of_ten(value: float) -> str:
    """``10⁻¹²``: the label of a power of ten, in plain letters."""
    return "10" + f"{math.log10(value):.0f}".translate(RAISED)


def _plot(axes: "Axes", found: LinearBound) -> None:
    d, last = found.dimensions, found.points[-1].images
    below = [point for point in found.points if point.images < d]
    m = [point.images for point in below]
    axes.axvspan(d - 0.5, last + 0.5, color="#eef4fa", zorder=0)
    axes.plot(m, [p.bound for p in below], ":", color=BOUND, label="spectral bound")
    axes.plot(m, [p.theory for p in below], "-", color=THEORY, lw=1, label="best possible")
    everywhere = [p.images for p in found.points]
    excess = [max(p.engine, LEAST) for p in found.points]
    worst = [max(p.worst, LEAST) for p in found.points]
    expected, seen = "engine, expected over p(θ₀)", f"engine, worst of {found.starts:,} θ₀"
    axes.plot(everywhere, excess, "o", color=ENGINE, ms=4.5, label=expected)
    axes.plot(everywhere, worst, "_", color=ENGINE, ms=7, label=seen)
    axes.axhline(found.untrained, color=BOUND, lw=0.7, ls="--")
    axes.text(last + 0.4, found.untrained * 1.5, "no step at all", ha="right", color=SOFT)
    middle = (min(excess) * found.untrained) ** 0.5
    exact = f"M ≥ D = {d}:\nexact from\nevery θ₀"
    axes.text((d + last) / 2, middle, exact, ha="center", va="center", color=ENGINE)
    axes.set_ylim(min(excess) / 20, found.untrained * 20)
    axes.set_xlim(0.5, last + 0.5)
    axes.set_xticks(everywhere)
