"""The one style of all figures: fonts, sizes, and colours that the colour-blind can tell apart."""

import contextlib
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..files import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#e69f00", "#cc79a7", "#56b4e9", "#8a929b")
"""Okabe and Ito's, in the order of the page; the last is grey, for what is compared with."""
DASHES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (4, 2)), (0, (1, 1)), "-")
INK, SOFT, RULE = "#1a1c1f", "#5a6068", "#d9dde2"
BLUE, GREY = COLOURS[0], COLOURS[-1]
SIZE = 8  # points
DPI = 200

PARAMETERS: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": SIZE,
    "text.parse_math": False,  # a $ is just a $
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "datadistill",  # the same figure is the same file
}


@dataclass(frozen=True)
class Theme:
    """Colours of a figure on a page: of its background, text, and bars."""

    paper: str = "white"
    ink: str = INK
    soft: str = SOFT
    accent: str = BLUE
    grey: str = GREY


LIGHT = Theme()
DARK = Theme("#0d1117", "#e8eaed", "#a3abb5", COLOURS[5], "#7d8792")


@contextlib.contextmanager
def drawing(
    width: float, height: float, *, theme: Theme = LIGHT, **options: Any
) -> Generator["Figure"]:
    """Lends an empty figure in our style.

    Args:
        width: Inches.
        height: Inches.
        theme: The colours of its background.
        options: Of matplotlib's ``Figure``.
    """
    import matplotlib as mpl  # slow to import
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context(PARAMETERS):
        figure = Figure(figsize=(width, height), facecolor=theme.paper, **options)
        FigureCanvasAgg(figure)
        yield figure


def save(figure: "Figure", path: Path, *, dpi: int = DPI, caption: str = "") -> None:
    """Writes a figure, whole or not at all; the format is that of the file's name.

    Args:
        figure: The figure.
        path: The file.
        dpi: Pixels per inch.
        caption: What the file itself says of the figure.
    """
    known = {".png": {"Description": caption}, ".svg": {"Description": caption, "Date": None}}
    metadata: dict[str, Any] = known.get(path.suffix, {}) if caption else {}
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=dpi, metadata=metadata)
