"""The charts of a report as PNG and SVG files, for papers."""

import itertools
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import printable
from ..files import write_atomically
from ..pixels import are_images
from . import sentences, telling
from .charts import AnyChart, BarChart, LineChart, MatrixChart, number
from .overview import draw_overview, overview
from .picture import draw
from .story import Story
from .style import BLUE, COLOURS, DASHES, GREY, INK, SOFT, drawing, save
from .svg import NAMED, NUMBERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 3.5  # inches: a column of a paper
VALUE = 116  # percent, where the value of a bar ends
LETTERS = 72  # of a line of a caption
LINE = 0.13  # inches
FORMATS = (".png", ".svg")


def write_figures(stories: Sequence[Story], folder: Path) -> list[Path]:
    """Writes every chart of a report as PNG and SVG, and their captions.

    Args:
        stories: The runs; of several, the charts that show all of them.
        folder: Where to; it is made if there is none.

    Returns:
        The files.
    """
    written: list[Path] = []
    charts = telling.compared(stories) if len(stories) > 1 else telling.charts_of(stories[0])
    for chart in charts:
        for suffix in FORMATS:
            path = folder / f"{chart.key}{suffix}"
            draw_chart(chart, path)
            written.append(path)
    captions = [f"**{chart.key}** {chart.title}. {chart.caption}\n" for chart in charts]
    distilled = stories[0].distilled
    if len(stories) == 1 and distilled and are_images(distilled.inputs.shape[2:]):
        for suffix in FORMATS:
            draw(distilled, folder / f"images{suffix}")
            written.append(folder / f"images{suffix}")
        made = telling.made_text(stories[0])
        captions.append(f"**images** {sentences.headline(stories[0])} {made}\n")
        if chart := overview(stories[0]):
            for name, suffix in itertools.product(("overview", "overview-dark"), FORMATS):
                path = folder / f"{name}{suffix}"
                draw_overview(distilled, chart, path, dark=name != "overview")
                written.append(path)
            captions.append(f"**overview** {chart.title} {chart.caption}\n")
    path = folder / "captions.md"
    write_atomically(path, printable("\n".join(captions)).encode())
    return [*written, path]


def draw_chart(chart: AnyChart, path: Path) -> None:
    """Draws one chart, with its caption below."""
    caption = printable(chart.caption)
    lines = textwrap.wrap(caption, LETTERS)
    foot = LINE * len(lines) + 0.08
    height = _height(chart) + foot
    with drawing(WIDTH, height) as figure:
        left, bottom = _margins(chart)
        box = (left / WIDTH, (foot + bottom) / height)
        right = 0.42 if isinstance(chart, BarChart) else 0.12
        size = (1 - box[0] - right / WIDTH, 1 - box[1] - 0.3 / height)
        axes = figure.add_axes((*box, *size))
        axes.set_title(printable(chart.title), fontsize=9, loc="left", color=INK)
        match chart:
            case LineChart():
                _lines(axes, chart)
            case BarChart():
                _bars(axes, chart)
            case MatrixChart():
                _matrix(axes, chart)
        place: dict[str, Any] = {"va": "bottom", "fontsize": 6, "color": SOFT}
        figure.text(0.06 / WIDTH, 0.04 / height, "\n".join(lines), **place)
        save(figure, path, caption=f"{chart.title}. {caption}")


def _height(chart: AnyChart) -> float:
    match chart:
        case LineChart():
            return 2.3
        case BarChart():
            return 0.9 + 0.22 * len(chart.bars)
        case MatrixChart():
            return WIDTH


def _margins(chart: AnyChart) -> tuple[float, float]:
    """Inches left of the axes and below them."""
    match chart:
        case LineChart():
            return 0.62, 0.42
        case BarChart():
            return 1.3, 0.42
        case MatrixChart():
            return (0.9, 0.75) if max(map(len, chart.names)) > 3 else (0.5, 0.45)


def _lines(axes: "Axes", chart: LineChart) -> None:
    for place, line in enumerate(chart.lines):
        colour, dash = COLOURS[place % len(COLOURS)], DASHES[place % len(DASHES)]
        if line.low:
            axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.18, lw=0)
        mark = "o" if line.dots or len(line.x) == 1 else ""
        style: dict[str, Any] = {"marker": mark, "ms": 3, "mfc": "white", "lw": 1.3, "ls": dash}
        axes.plot(line.x, line.y, color=colour, label=printable(line.name), **style)
    for one in chart.breaks:
        axes.axvline(one, color=GREY, lw=0.6, ls=":")
    axes.grid(axis="y")
    axes.set_xlabel(chart.x)
    axes.set_ylabel(chart.y)
    if chart.log:
        axes.set_yscale("log")
        axes.yaxis.minorticks_off()
    axes.set_ylim(chart.limits)
    names = [number(value, percent=chart.percent) for value in chart.y_ticks]
    axes.set_yticks(chart.y_ticks, names)
    axes.set_xticks(chart.x_ticks, [f"{value:,.0f}" for value in chart.x_ticks])
    if len(chart.lines) > 1:
        axes.legend(fontsize=7)


def _bars(axes: "Axes", chart: BarChart) -> None:
    places = range(len(chart.bars))
    axes.barh(
        places,
        [100 * bar.value for bar in chart.bars],
        xerr=[100 * (bar.deviation or 0.0) for bar in chart.bars],
        color=[BLUE if bar.own else GREY for bar in chart.bars],
        height=0.62,
        error_kw={"lw": 1, "ecolor": INK},
    )
    for place, bar in enumerate(chart.bars):
        text: dict[str, Any] = {"ha": "right", "va": "center", "fontsize": 7, "color": INK}
        axes.text(VALUE, place, f"{100 * bar.value:.1f}", weight="bold" * bar.own or None, **text)
        if bar.paper is not None:
            axes.plot([100 * bar.paper] * 2, [place - 0.42, place + 0.42], color=INK, ls="--", lw=1)
    axes.set_yticks(list(places), [printable(bar.name) for bar in chart.bars])
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.grid(axis="x")
    axes.set_xlabel(f"{chart.x} in %")


def _matrix(axes: "Axes", chart: MatrixChart) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("shades", ["white", BLUE])
    axes.imshow(chart.shares, cmap=shades, vmin=0, vmax=1, aspect="equal")
    count = len(chart.names)
    if count <= NUMBERS:
        for row, line in enumerate(chart.shares):
            for column, share in enumerate(line):
                if share >= 0.005:
                    colour = "white" if share > 0.5 else INK
                    centred: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 6}
                    axes.text(column, row, f"{100 * share:.0f}", color=colour, **centred)
    if count <= NAMED:
        names = [printable(name)[:12] for name in chart.names]
        steep = 60 if max(map(len, names)) > 3 else 0
        axes.set_xticks(range(count), names, fontsize=6, rotation=steep)
        axes.set_yticks(range(count), names, fontsize=6)
    axes.set_xlabel("called")
    axes.set_ylabel("true class")
