"""The accuracies that a page prints."""

import re

NUMBER = r"\d{1,3}\.\d{1,2}"
FIGURE = re.compile(rf"(?<![\w.,×-])({NUMBER}(?: ± {NUMBER})?)(?![\d.])")
UNIT = re.compile(r"^(?:\*\*)? ?%")
JOINED = re.compile(
    r"^(?:\*\*)?(?: \([^()]*\))?(?: / |, | and |, and | to | \()(?:[A-Z]\w+ )?(?:\*\*)?$"
)
"""What stands between the figures of a list, of which the last has the unit."""
CELL = re.compile(rf"^[*\s]*{NUMBER}(?: ± {NUMBER})?(?: ?%)?[*\s]*(?:\([^()]*\)\s*)?$")
BENCHMARKS = re.compile(r"^<!-- benchmarks: .*?^<!-- end -->", re.DOTALL | re.MULTILINE)
"""Tables that another test compares with benchmarks/results.json."""
FENCE = re.compile(r"^```(\w*)$.*?^```$", re.DOTALL | re.MULTILINE)
BROKEN = re.compile(r"(?<=[^\n|])\n(?=[^\n|#`*<-])")
"""The end of a line inside a paragraph."""


def figures(page: str) -> set[str]:
    """Accuracies in percent of at least 1, wherever they stand; those without decimals are not."""
    text = FENCE.sub(lambda one: one[0] if one[1] == "text" else "", BENCHMARKS.sub("", page))
    lines = [line for block in _blocks(text) for line in block]
    return {figure for line in lines for figure in in_line(line) if float(figure.split()[0]) >= 1}


def in_line(line: str) -> list[str]:
    """Those with a deviation or a unit, and whole cells of tables, in their order."""
    if not line.startswith("|"):
        return _in_text(line)
    return [figure for cell in line.strip("| ").split("|") for figure in in_cell(cell)]


def in_cell(cell: str) -> list[str]:
    """Those of a cell of a table."""
    return (
        [found[1] for found in [FIGURE.search(cell)] if found]
        if CELL.match(cell)
        else _in_text(cell)
    )


def _in_text(text: str) -> list[str]:
    found, listed, end = list[str](), list[str](), 0
    for match in FIGURE.finditer(text):
        if not JOINED.match(text[end : match.start()]):
            listed = []
        end = match.end()
        listed.append(match[1])
        if "±" in match[1] or UNIT.match(text[end:]):
            found += listed
            listed = []
    return found


def _blocks(text: str) -> list[list[str]]:
    """Lines, with those of a paragraph joined; what a program printed stays as it is."""
    parts = re.split(r"^```.*$", text, flags=re.MULTILINE)
    return [(part if n % 2 else BROKEN.sub(" ", part)).splitlines() for n, part in enumerate(parts)]
