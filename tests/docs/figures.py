"""The accuracies that a page prints."""

import re

NUMBER = r"\d{1,3}\.\d{1,2}"
FIGURE = re.compile(rf"(?<![\w.,])({NUMBER}(?: ± {NUMBER})?)(?![\d.])")
UNIT = re.compile(r"^(?:\*\*)? ?%")
CELL = re.compile(rf"^[*\s]*{NUMBER}(?: ± {NUMBER})?(?: ?%)?[*\s]*$")
BENCHMARKS = re.compile(r"^<!-- benchmarks: .*?^<!-- end -->", re.DOTALL | re.MULTILINE)
"""Tables that another test compares with benchmarks/results.json."""
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def figures(page: str) -> set[str]:
    """Accuracies in percent: those with a deviation or a unit, and whole cells of tables."""
    found: set[str] = set()
    for line in FENCE.sub("", BENCHMARKS.sub("", page)).splitlines():
        for match in FIGURE.finditer(line):
            if "±" in match[1] or UNIT.match(line[match.end() :]):
                found.add(match[1])
        if line.startswith("|"):
            cells = [cell for cell in line.strip("| ").split("|") if CELL.match(cell)]
            found |= {match[1] for cell in cells for match in FIGURE.finditer(cell)}
    return found
