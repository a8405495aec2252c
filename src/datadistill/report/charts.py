"""Charts as plain descriptions: what is drawn, whoever draws it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

POINTS = 150
"""Points of a line at most; more are put together, and their range is drawn as a band."""
WIDE = 0.4
"""A range of shares that is drawn from 0 to 100 %."""


@dataclass(frozen=True)
class Line:
    """A line, perhaps with a band around it.

    Attributes:
        name: What the legend says; empty if there is only one.
        x: Where its points are.
        y: Their values.
        low: The lower edge of the band; empty if there is none.
        high: The upper edge.
        dots: Whether its points are marked.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    dots: bool = False

    @classmethod
    def binned(cls, name: str, x: Sequence[float], y: Sequence[float]) -> "Line":
        """A line through many points: means up to every so many, with their range as the band."""
        size = math.ceil(len(x) / POINTS)
        if size <= 1:
            return cls(name, x, y)
        parts = [slice(start, start + size) for start in range(0, len(x), size)]
        values = [y[part] for part in parts]
        return cls(
            name,
            [x[part][-1] for part in parts],
            [_mean(part) for part in values],
            [min(part) for part in values],
            [max(part) for part in values],
        )

    @classmethod
    def banded(
        cls,
        name: str,
        x: Sequence[float],
        y: Sequence[float],
        deviations: Sequence[float],
        *,
        shares: bool,
        dots: bool,
    ) -> "Line":
        """A line with a band of one deviation, which leaves 0 to 100 % no more than shares do."""
        least, most = (0.0, 1.0) if shares else (-math.inf, math.inf)
        pairs = list(zip(y, deviations, strict=True)) if deviations else []
        return cls(
            name,
            x,
            y,
            [max(least, mean - deviation) for mean, deviation in pairs],
            [min(most, mean + deviation) for mean, deviation in pairs],
            dots,
        )


@dataclass(frozen=True)
class Chart:
    """What every chart has.

    Attributes:
        key: A short name, for files.
        title: What it shows.
        caption: What it was measured with: networks, data set, seeds.
    """

    key: str
    title: str
    caption: str


@dataclass(frozen=True)
class LineChart(Chart):
    """Lines over a common axis.

    Attributes:
        x: What the horizontal axis shows.
        y: What the vertical axis shows.
        lines: The lines.
        percent: Whether values are shares, shown in percent.
        log: Whether the vertical axis is logarithmic.
        breaks: Where vertical lines divide the chart, e.g. between epochs.
    """

    x: str
    y: str
    lines: Sequence[Line]
    percent: bool = False
    log: bool = False
    breaks: Sequence[float] = ()

    @property
    def limits(self) -> tuple[float, float]:
        """Where the vertical axis begins and ends: all values and bands, and some room."""
        values = [v for line in self.lines for part in (line.y, line.low, line.high) for v in part]
        low, high = min(values), max(values)
        if self.log:
            low = max(low, high * 1e-9, 1e-12)
            return low / 1.15, max(high, low) * 1.15
        if self.percent and high - low > WIDE:
            return min(low, 0.0), max(high, 1.0)
        room = 0.05 * (high - low) or abs(high) * 0.05 or 1.0
        return (0.0 if 0 <= low < high / 2 else low - room), high + room

    @property
    def span(self) -> tuple[float, float]:
        """The first and the last place on the horizontal axis."""
        places = [place for line in self.lines for place in line.x]
        return min(places), max(max(places), min(places) + 1)

    @property
    def y_ticks(self) -> list[float]:
        """Where the vertical axis has numbers."""
        return log_ticks(*self.limits) if self.log else ticks(*self.limits)

    @property
    def x_ticks(self) -> list[float]:
        """Where the horizontal axis has numbers: they count something, and are whole."""
        return [value for value in ticks(*self.span) if value == round(value)]


@dataclass(frozen=True)
class Bar:
    """One bar: a mean, its standard deviation, and the paper's figure where it has one."""

    name: str
    value: float
    deviation: float | None = None
    paper: float | None = None
    own: bool = False


@dataclass(frozen=True)
class BarChart(Chart):
    """Horizontal bars of shares.

    Attributes:
        x: What they show.
        bars: From top to bottom.
    """

    x: str
    bars: Sequence[Bar]


@dataclass(frozen=True)
class MatrixChart(Chart):
    """A confusion matrix.

    Attributes:
        names: The classes.
        counts: How many examples of each class (rows) are called each class (columns).
    """

    names: Sequence[str]
    counts: Sequence[Sequence[int]]

    @property
    def shares(self) -> list[list[float]]:
        """The same as shares of each row."""
        return [[count / max(sum(row), 1) for count in row] for row in self.counts]


AnyChart = LineChart | BarChart | MatrixChart


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers between two bounds: 1, 2 or 5 times a power of ten apart."""
    if not high > low:
        return [low]
    rough = (high - low) / max(most - 1, 1)
    power = 10 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten between two bounds; 2 and 5 times them too where there are few."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = (1,) if len(powers) > 4 else (1, 2, 5)
    found = [f * 10**p for p in powers for f in factors if low <= f * 10**p <= high]
    return found if len(found) > 1 else ticks(low, high, 5)


def number(value: float, *, percent: bool = False) -> str:
    """A value on an axis or in a table."""
    return f"{100 * value:.3g} %" if percent else f"{value:.4g}"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
