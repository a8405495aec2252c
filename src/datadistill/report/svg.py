"""Charts as SVG that stands in the page itself."""

import math
from collections.abc import Callable, Sequence

from markupsafe import Markup

from .charts import AnyChart, BarChart, Line, LineChart, MatrixChart, number, ticks

WIDTH, HEIGHT = 460, 270
LEFT, RIGHT, TOP, BOTTOM = 68, 14, 12, 42
COLOURS = 7  # of Okabe and Ito, as classes of the style sheet
ROW = 27  # of a bar
LABEL = 150
NUMBERS = 12  # classes up to which a matrix shows numbers
NAMED = 30  # classes up to which it shows names
LETTERS = 22

Scale = Callable[[float], float]


def svg(chart: AnyChart) -> Markup:
    """The drawing of a chart."""
    match chart:
        case LineChart():
            return _lines(chart)
        case BarChart():
            return _bars(chart)
        case MatrixChart():
            return _matrix(chart)


def _drawing(chart: AnyChart, width: float, height: float, parts: Sequence[Markup]) -> Markup:
    head = Markup('<svg viewBox="0 0 {:.0f} {:.0f}" role="img"><title>{}. {}</title>')
    return head.format(width, height, chart.title, chart.caption) + _join(parts) + Markup("</svg>")


def _join(parts: Sequence[Markup]) -> Markup:
    return Markup("").join(parts)


def _text(x: float, y: float, text: str, anchor: str = "middle", more: str = "") -> Markup:
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}"{}>{}</text>').format(
        x, y, anchor, Markup(more), text
    )


def _rule(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    return Markup('<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" class="{}"/>').format(
        x1, y1, x2, y2, kind
    )


def _lines(chart: LineChart) -> Markup:
    (left, right), (low, high), y_ticks = chart.span, chart.limits, chart.y_ticks

    def x(place: float) -> float:
        return LEFT + (place - left) / (right - left) * (WIDTH - LEFT - RIGHT)

    def share(value: float) -> float:
        if chart.log:
            return math.log(max(value, low) / low) / math.log(high / low)
        return (value - low) / (high - low)

    def y(value: float) -> float:
        return TOP + (1 - share(value)) * (HEIGHT - TOP - BOTTOM)

    floor = HEIGHT - BOTTOM
    parts = [_rule(LEFT, y(v), WIDTH - RIGHT, y(v), "grid") for v in y_ticks]
    parts += [_rule(x(b), TOP, x(b), floor, "break") for b in chart.breaks]
    parts += [_text(LEFT - 6, y(v) + 4, number(v, percent=chart.percent), "end") for v in y_ticks]
    parts += [_text(x(v), floor + 17, f"{v:,.0f}") for v in chart.x_ticks]
    parts += [_rule(LEFT, floor, WIDTH - RIGHT, floor, "axis")]
    for place, line in enumerate(chart.lines):
        parts += _line(line, place % COLOURS, x, y)
    middle = (TOP + floor) / 2
    turned = f' transform="rotate(-90 12 {middle:.0f})"'
    parts += [
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, chart.x, more=' class="name"'),
        _text(12, middle, chart.y, more=f' class="name"{turned}'),
    ]
    return _drawing(chart, WIDTH, HEIGHT, parts)


def _line(line: Line, colour: int, x: Scale, y: Scale) -> list[Markup]:
    places = [x(place) for place in line.x]
    parts: list[Markup] = []
    if line.low:
        there = [f"{px:.1f},{y(v):.1f}" for px, v in zip(places, line.high, strict=True)]
        back = [f"{px:.1f},{y(v):.1f}" for px, v in zip(places, line.low, strict=True)]
        points = " ".join([*there, *reversed(back)])
        parts.append(Markup('<polygon points="{}" class="band c{}"/>').format(points, colour))
    points = " ".join(f"{px:.1f},{y(v):.1f}" for px, v in zip(places, line.y, strict=True))
    parts.append(Markup('<polyline points="{}" class="line c{}"/>').format(points, colour))
    if line.dots or len(places) == 1:
        parts += [
            Markup('<circle cx="{:.1f}" cy="{:.1f}" r="2.6" class="dot c{}"/>').format(
                px, y(v), colour
            )
            for px, v in zip(places, line.y, strict=True)
        ]
    return parts


def _bars(chart: BarChart) -> Markup:
    left, right, floor = LABEL, WIDTH - 62, TOP + ROW * len(chart.bars)

    def x(value: float) -> float:
        return left + min(max(value, 0.0), 1.0) * (right - left)

    parts = [_rule(x(v), TOP, x(v), floor, "grid") for v in ticks(0, 1)]
    parts += [_text(x(v), floor + 16, number(v, percent=True)) for v in ticks(0, 1)]
    for place, bar in enumerate(chart.bars):
        middle = TOP + ROW * (place + 0.5)
        shape = Markup('<rect x="{}" y="{:.1f}" width="{:.1f}" height="{}" class="bar {}"/>')
        parts += [
            _text(left - 8, middle + 4, _cut(bar.name), "end"),
            shape.format(left, middle - 8, x(bar.value) - left, 16, "c0" if bar.own else "c6"),
        ]
        if bar.deviation:
            low, high = x(bar.value - bar.deviation), x(bar.value + bar.deviation)
            parts.append(_rule(low, middle, high, middle, "whisker"))
        if bar.paper is not None:
            parts.append(_rule(x(bar.paper), middle - 10, x(bar.paper), middle + 10, "paper"))
        value = f"{100 * bar.value:.1f} %"
        parts.append(_text(WIDTH - 4, middle + 4, value, "end", ' class="value"'))
    parts.append(_text((left + right) / 2, floor + 34, chart.x, more=' class="name"'))
    return _drawing(chart, WIDTH, floor + 42, parts)


def _matrix(chart: MatrixChart) -> Markup:
    count, named = len(chart.names), len(chart.names) <= NAMED
    steep = named and max(map(len, chart.names)) > 3
    margin = 96 if steep else 48
    side = WIDTH - margin - RIGHT
    cell, shares = side / count, chart.shares
    head = margin if steep else 44
    parts: list[Markup] = []
    square = Markup('<rect x="{:.1f}" y="{:.1f}" width="{w:.1f}" height="{w:.1f}" {}/>')
    for row, line in enumerate(shares):
        for column, share in enumerate(line):
            x, y = margin + column * cell, head + row * cell
            if share >= 0.005 or count <= NUMBERS:
                kind = Markup('class="c{}" fill-opacity="{:.2f}"').format(
                    0 if row == column else 3, share
                )
                parts.append(square.format(x, y, kind, w=cell))
            if count <= NUMBERS and share >= 0.005:
                more = f' class="count{" strong" if share > 0.5 else ""}"'
                parts.append(_text(x + cell / 2, y + cell / 2 + 4, f"{100 * share:.0f}", more=more))
    parts.append(square.format(margin, head, Markup('class="frame"'), w=side))
    if named:
        parts += _names(chart.names, margin, head, cell)
    middle = margin + side / 2
    turned = f' class="name" transform="rotate(-90 12 {head + side / 2:.0f})"'
    parts += [
        _text(middle, 14, "called", more=' class="name"'),
        _text(12, head + side / 2, "true class", more=turned),
    ]
    return _drawing(chart, WIDTH, head + side + 6, parts)


def _names(names: Sequence[str], margin: float, head: float, cell: float) -> list[Markup]:
    """The classes beside the rows and above the columns of a matrix."""
    small, steep = "" if cell > 14 else " small", max(map(len, names)) > 3
    letters = 12 if steep else 3
    parts: list[Markup] = []
    for place, name in enumerate(names):
        middle, shown = (place + 0.5) * cell, _cut(name, letters)
        parts.append(_text(margin - 6, head + middle + 4, shown, "end", f' class="tick{small}"'))
        x, y = margin + middle + 4, head - 6
        if steep:
            turned = f' class="tick{small}" transform="rotate(-60 {x:.1f} {y:.1f})"'
            parts.append(_text(x, y, shown, "start", turned))
        else:
            parts.append(_text(x - 4, y, shown, "middle", f' class="tick{small}"'))
    return parts


def _cut(text: str, letters: int = LETTERS) -> str:
    return text if len(text) <= letters else f"{text[: letters - 1].rstrip()}…"
