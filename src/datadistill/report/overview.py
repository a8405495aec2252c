"""One figure that says it all: the distilled images beside what they do."""

import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from ..artefact import DistilledData
from ..errors import printable
from ..pixels import are_images, pictures_of
from . import sentences, telling
from .charts import BarChart
from .grid import label_of, lines_of
from .names import data_name, network_name
from .story import Baselines, Story
from .style import DARK, LIGHT, Theme, drawing, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, EDGE = 7.0, 0.12  # inches: two columns of a paper, and its margin
PANEL = 2.7  # inches, of the images
GAP = 0.3  # between them and the bars
NAMES, VALUES = 1.45, 0.85  # left and right of the bars
BAR = 0.3
HEAD = 0.36
LABEL = 0.16  # above images
LETTERS, LINE = 148, 0.115  # of the caption: of a line, and between lines
MOST = 400  # images
PAD = 0.06  # between images, where one is 1 wide
SHORT = 4  # letters of a label that fits above an image
ROWS = ("untrained", "no adaptation", "random real", "distilled", "all real", "full target")
"""The rows of the baseline table that are shown."""


def overview(story: Story) -> BarChart | None:
    """The bars of the figure; None if there are no images, or the baselines are not measured."""
    chart, distilled, table = telling.baselines(story), story.distilled, story.baselines
    if chart is None or distilled is None or table is None or len(distilled) > MOST:
        return None
    if not are_images(distilled.inputs.shape[2:]):
        return None
    count, network = len(distilled), network_name(distilled.header.architecture.name)
    every = f"{table.train_examples:,} " if table.train_examples else ""
    names = {
        "random real": f"{count} random real images",
        "distilled": f"{count} distilled images",
        "all real": f"all {every}real images",
    }
    known = {bar.name: bar for bar in chart.bars}
    return replace(
        chart,
        key="overview",
        title=f"{data_name(table.data)} test accuracy of {network}, trained on …",
        caption=f"{sentences.headline(story)} {_measured(table, distilled)}",
        bars=[
            replace(known[row], name=names.get(row, row), paper=None)
            for row in ROWS
            if row in known
        ],
    )


def _measured(table: Baselines, distilled: DistilledData) -> str:
    """What the bars were measured with."""
    networks = sentences.networks_text(table.rows["distilled"].networks, distilled, 0)
    text = f"{data_name(table.data)} test, {table.test_examples:,} examples; {networks}."
    if drawn := table.rows.get("random real"):
        chosen = "held-out training data" if table.select == "train" else "the test data"
        several = f"mean ± one standard deviation over {drawn.sets} draws"
        over = f"{several} and all networks" if drawn.networks > 1 else several
        text += f" Random real images: {over}, with settings chosen on {chosen}."
    return text


def draw_overview(
    distilled: DistilledData, chart: BarChart, path: Path, *, dark: bool = False
) -> None:
    """Draws the images and, beside them, the bars.

    Args:
        distilled: The distilled data, which are images.
        chart: The bars.
        path: The file; its name says whether it is PNG or SVG.
        dark: Whether it is for a dark page.
    """
    theme, caption = (DARK if dark else LIGHT), printable(chart.caption)
    lines, rows = textwrap.wrap(caption, LETTERS), _rows(distilled)
    columns = max(map(len, rows))
    side = PANEL / columns
    high = distilled.images.shape[-2] / distilled.images.shape[-1]
    panel = side * high * len(rows) + LABEL * (len(rows) if _single(distilled) else 1)
    body = max(panel, BAR * len(chart.bars))
    foot = EDGE + LINE * len(lines) + 0.14
    height = foot + body + HEAD
    with drawing(WIDTH, height, theme=theme) as figure:
        bottom, left = (foot + body - panel) / height, EDGE + PANEL + GAP
        axes = figure.add_axes((EDGE / WIDTH, bottom, PANEL / WIDTH, panel / height))
        _images(axes, distilled, rows, theme)
        wide = WIDTH - left - NAMES - VALUES
        box = ((left + NAMES) / WIDTH, foot / height, wide / WIDTH, body / height)
        _bars(figure.add_axes(box), chart, theme)
        titles = {EDGE: f"{len(distilled)} distilled images", left: printable(chart.title)}
        bold: dict[str, Any] = {"va": "center", "fontsize": 8.5, "weight": "bold"}
        for x, text in titles.items():
            figure.text(x / WIDTH, 1 - 0.17 / height, text, color=theme.ink, **bold)
        small: dict[str, Any] = {"va": "bottom", "fontsize": 6, "linespacing": 1.25}
        figure.text(EDGE / WIDTH, EDGE / height, "\n".join(lines), color=theme.soft, **small)
        save(figure, path, caption=f"{chart.title} {caption}")


def _single(distilled: DistilledData) -> bool:
    """Whether there is a single step, whose images each have a label above."""
    return len(distilled.images) == 1


def _rows(distilled: DistilledData) -> list[list[tuple[int, int]]]:
    """The (step, image) of every place, row by row; one long line becomes two."""
    lines = lines_of(distilled.labels)
    if _single(distilled) and len(lines) == 1 and len(lines[0]) > 5:
        half = (len(lines[0]) + 1) // 2
        lines = [lines[0][:half], lines[0][half:]]
    return [
        [(step, one) for one in line] for step in range(len(distilled.images)) for line in lines
    ]


def _images(
    axes: "Axes", distilled: DistilledData, rows: Sequence[Sequence[tuple[int, int]]], theme: Theme
) -> None:
    """Every image at its place, with its label above; of several steps, above the first alone."""
    pictures = pictures_of(distilled.images)
    columns, single = max(map(len, rows)), _single(distilled)
    tall = pictures.shape[-2] / pictures.shape[-1]
    room = LABEL / (PANEL / columns)  # of a label, where an image is 1 wide
    top, grey = 0.0, dict[str, Any](cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    for number, row in enumerate(rows):
        labelled = single or number == 0
        top += room * labelled
        for column, place in enumerate(row):
            box = (column, column + 1 - PAD, top + tall * (1 - PAD), top)
            axes.imshow(_pixels(pictures[place]), extent=box, **grey)
            label = printable(label_of(distilled, distilled.labels[place]))
            if labelled and len(label) <= SHORT:
                middle = column + (1 - PAD) / 2
                small: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": 6.5}
                axes.text(middle, top - 0.15 * room, label, color=theme.soft, **small)
        top += tall
    axes.set(xlim=(0, columns), ylim=(top, 0), aspect="auto")
    axes.axis("off")


def _pixels(picture: Tensor) -> Any:
    return picture.permute(1, 2, 0).squeeze(-1).numpy()


def _bars(axes: "Axes", chart: BarChart, theme: Theme) -> None:
    """A bar for each figure, which stands beside it."""
    for place, bar in enumerate(chart.bars):
        colour, weight = (theme.accent, "bold") if bar.own else (theme.grey, "normal")
        axes.barh(place, bar.value, color=colour, height=0.56)
        shown, end = f"{100 * bar.value:.1f}", bar.value
        if bar.deviation is not None:
            shown, end = f"{shown} ± {100 * bar.deviation:.1f}", bar.value + bar.deviation
            axes.plot([bar.value - bar.deviation, end], [place, place], color=theme.ink, lw=0.9)
        text: dict[str, Any] = {"va": "center", "fontsize": 8, "color": theme.ink, "weight": weight}
        axes.text(max(end, bar.value) + 0.025, place, f"{shown} %", **text)
        axes.text(-0.03, place, printable(bar.name), ha="right", **text)
    axes.axvline(0, color=theme.soft, lw=0.8)
    axes.set(xlim=(0, 1), ylim=(len(chart.bars) - 0.5, -0.5))
    axes.axis("off")
