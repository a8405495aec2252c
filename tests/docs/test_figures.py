"""Every accuracy in README and docs stands in a committed results.json."""

from pathlib import Path
from typing import Any

import pytest
from benchmarks.accuracies import DOCS, overall, pooled, read, with_tables

from .figures import figures

ROOT = Path(__file__).parents[2]
MADE_BY_BENCHMARKS = ROOT / "docs" / "performance.md"  # tests/benchmarks compare it
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def _forms(mean: float, std: float | None = None) -> set[str]:
    """How a figure may be printed."""
    means = {digits: f"{mean:.{digits}f}" for digits in (1, 2)}
    if std is None:
        return set(means.values())
    return {text for d, m in means.items() for text in (m, f"{m} ± {std:.{d}f}")}


def _known(content: dict[str, Any]) -> set[str]:
    known = set[str]()
    for runs in content["rows"].values():
        known |= _forms(*pooled(runs)) | {overall(runs)}
        for run in runs:
            known |= _forms(run["mean"], run["std"])
            if run["held_out"] is not None:
                known |= _forms(run["held_out"])
    for others in (content["paper"], content["measured"]):
        known |= {figure for listed in others.values() for figure in listed["figures"]}
    return known


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_accuracy_stands_in_results_json(page: Path) -> None:
    if page == MADE_BY_BENCHMARKS:
        pytest.skip("its tables are compared with benchmarks/results.json")
    unknown = figures(page.read_text("utf-8")) - _known(read())
    assert not {figure for figure in unknown if float(figure.split()[0]) >= 1}


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_tables_of_runs_are_those_of_results_json(page: Path) -> None:
    text = page.read_text("utf-8")
    assert with_tables(text, read()) == text


def test_every_figure_has_a_command() -> None:
    content = read()
    assert all(run["command"] for runs in content["rows"].values() for run in runs)
    assert all(listed["command"] for listed in content["measured"].values())
