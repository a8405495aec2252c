"""Small pieces of HTML, for notebooks: every text in them is escaped."""

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from .errors import printable


def text(value: object) -> Markup:
    """Any value as text in HTML; it may come from a file."""
    return Markup("{}").format(printable(str(value)))


def table(rows: Iterable[Sequence[object]], head: Sequence[object] = ()) -> Markup:
    """A table; what is Markup already stands in it as it is."""
    parts = [_row("th", head)] if head else []
    parts += [_row("td", row) for row in rows]
    return Markup("<table>{}</table>").format(Markup("").join(parts))


def _row(tag: str, cells: Iterable[object]) -> Markup:
    shown = (cell if isinstance(cell, Markup) else text(cell) for cell in cells)
    wrapped = (Markup(f"<{tag}>{{}}</{tag}>").format(cell) for cell in shown)
    return Markup("<tr>{}</tr>").format(Markup("").join(wrapped))
