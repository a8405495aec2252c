"""Every accuracy in README, docs, recipes and cards stands in a committed results.json."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from benchmarks.accuracies import DOCS, overall, pooled, read, with_tables

import datadistill as dd
from datadistill.artefact.published import FOLDER, published_names
from datadistill.runs.recipes import read_recipe, recipe_names

from .figures import figures, in_cell

ROOT = Path(__file__).parents[2]
MADE_BY_BENCHMARKS = ROOT / "docs" / "performance.md"  # tests/benchmarks compare it
README, SUMMARY = ROOT / "README.md", DOCS / "README.md"
PAGES = [
    page for page in (README, *sorted((ROOT / "docs").rglob("*.md"))) if page != MADE_BY_BENCHMARKS
]
CITED = {README: "digits.md"}
"""Whose figures a page may print besides its own: by default those of the results of its name."""
CONTENT = read()

Content = Mapping[str, Any]


def _forms(mean: float, std: float | None = None) -> set[str]:
    """How a figure may be printed."""
    means = {digits: f"{mean:.{digits}f}" for digits in (1, 2)}
    if std is None:
        return set(means.values())
    return {text for d, m in means.items() for text in (m, f"{m} ± {std:.{d}f}")}


def _of_runs() -> set[str]:
    known = set[str]()
    for runs in CONTENT["rows"].values():
        known |= _forms(*pooled(runs)) | {overall(runs)}
        for run in runs:
            known |= _forms(run["mean"], run["std"])
            if run["held_out"] is not None:
                known |= _forms(run["held_out"])
    return known


def _of_others() -> set[str]:
    """The paper's figures, and those of other methods."""
    paper = {figure for setting in CONTENT["paper"].values() for figure in setting["figures"]}
    return paper | {figure for one in CONTENT["published"].values() for figure in one["figures"]}


def _measured(page: str) -> set[str]:
    """Figures of a page of docs/results whose runs are not in the file."""
    listed = [one for name, one in CONTENT["measured"].items() if name.split(",")[0] == page]
    return {figure for one in listed for figure in one["figures"]}


def _known(page: Path) -> set[str]:
    if page == SUMMARY:
        own = {name.split(",")[0] for name in CONTENT["measured"]}
    else:
        own = {CITED.get(page, page.name)}
    return _of_runs() | _of_others() | {figure for name in own for figure in _measured(name)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_accuracy_stands_in_results_json(page: Path) -> None:
    assert figures(page.read_text("utf-8")) <= _known(page)


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_what_results_json_lists_for_a_page_is_on_it(page: Path) -> None:
    assert _measured(page.name) <= figures(page.read_text("utf-8"))


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_tables_of_runs_are_those_of_results_json(page: Path) -> None:
    text = page.read_text("utf-8")
    assert with_tables(text, CONTENT) == text


def test_every_figure_has_a_command() -> None:
    assert all(run["command"] for runs in CONTENT["rows"].values() for run in runs)
    for listed in CONTENT["measured"].values():
        assert listed["command"]
        for command in listed["command"]:
            assert command.startswith(("datadistill ", "python ", "docs/results/"))
    assert all(one["source"] for one in CONTENT["published"].values())


def _rows(page: str) -> dict[str, list[str]]:
    """Tables of a page: the first cell of a row, and the others."""
    found: dict[str, list[str]] = {}
    for line in page.splitlines():
        if line.startswith("|") and not re.match(r"^[|\s:-]+$", line):
            first, *others = (cell.strip() for cell in line.strip("|").split("|"))
            found[first.strip("*")] = others
    return found


def _resolved(reference: str) -> set[str]:
    """The figure that the summary has to show for a row, for the paper, or of another page."""
    if reference in CONTENT["rows"]:
        runs = CONTENT["rows"][reference]
        alone = len(runs) == 1 and runs[0]["networks"] == 1
        return {f"{pooled(runs)[0]:.2f}" if alone else overall(runs)}
    if reference in CONTENT["paper"]:
        setting = CONTENT["paper"][reference]
        mean = setting["rows"]["distilled"].split()[0]
        return {f for f in setting["figures"] if f"{float(f.split()[0]):.1f}" == mean}
    page, _, figure = reference.partition(": ")
    assert figure in _measured(page), reference
    return {figure}


def wrong_in_summary(page: str) -> list[str]:
    """The rows of docs/results/README.md that do not show what results.json has."""
    wrong: list[str] = []
    for label, cells in _rows(page).items():
        if label == "experiment":
            continue
        expected = CONTENT["summary"].get(label, {"ours": ["?"], "paper": []})
        for cell, references in zip(cells, (expected["ours"], expected["paper"]), strict=False):
            shown = in_cell(cell)
            allowed = [{"?"} if one == "?" else _resolved(one) for one in references]
            if len(shown) != len(allowed) or any(
                s not in a for s, a in zip(shown, allowed, strict=True)
            ):
                wrong.append(label)
    return wrong + [label for label in CONTENT["summary"] if label not in _rows(page)]


def wrong_in_readme(page: str) -> list[str]:
    """The rows of README's table that do not show what results.json has."""
    listed, rows = CONTENT["readme"], _rows(page)
    table = CONTENT["measured"]["digits.md"]["table"]
    wrong = [label for label in listed if label not in rows]
    shown = {label: in_cell(rows[label][-1]) for label in listed if label in rows}
    wrong += [n for n, found in shown.items() if found != [table[one] for one in listed[n]]]
    return wrong + [
        figure for figure in figures(page) if not any(figure in s for s in shown.values())
    ]


def test_the_summary_shows_the_figures_of_its_rows() -> None:
    """New rows need an entry in ``summary``: the rows, settings of the paper or pages they cite."""
    assert not wrong_in_summary(SUMMARY.read_text("utf-8"))


def test_readme_and_the_page_of_digits_show_the_same_baselines() -> None:
    assert not wrong_in_readme(README.read_text("utf-8"))
    table = CONTENT["measured"]["digits.md"]["table"]
    rows = _rows((DOCS / "digits.md").read_text("utf-8"))
    assert {label: in_cell(rows[label][0]) for label in table} == {n: [f] for n, f in table.items()}
    assert table["distilled"] == f"{CONTENT['rows']['digits-fixed'][0]['mean']:.1f}"


@pytest.mark.parametrize(
    ("path", "check"), [(README, wrong_in_readme), (SUMMARY, wrong_in_summary)]
)
def test_any_other_accuracy_would_be_found(path: Path, check: Any) -> None:
    page = path.read_text("utf-8")
    every = sorted(figures(page))
    lines = page.splitlines()
    for n, line in enumerate(lines):
        for figure in every if line.startswith("|") else ():
            for other in {*every, "12.34"} - {figure}:
                changed = re.sub(
                    rf"(?<![\d.]){re.escape(figure)}(?![\d.]| ±)", other, line, count=1
                )
                if changed != line:
                    assert check("\n".join([*lines[:n], changed, *lines[n + 1 :]])), (figure, other)


def test_what_the_ablation_is_said_to_show_is_in_its_runs() -> None:
    runs = json.loads((ROOT / "benchmarks" / "results.json").read_text("utf-8"))["beyond"]["runs"]
    means = {
        name.partition(": ")[2]: round(100 * sum(map(sum, seeds)) / sum(map(len, seeds)), 1)
        for name, seeds in runs.items()
        if name.startswith("mnist-random-100,")
    }
    gained = {f"{means[n] - means['default']:.1f}" for n in means if n.startswith("+ ")}
    missed = {f"{means['best'] - means[n]:.1f}" for n in means if n.startswith("best − ")}
    page = (ROOT / "docs" / "beyond.md").read_text("utf-8")
    said = page.partition("What the runs on MNIST show:")[2].split("\n- ")[1:3]
    for sentence, known in zip(said, (gained, missed), strict=True):
        found = re.findall(r"\d+\.\d", sentence)
        assert found
        assert {*found} <= known


@pytest.mark.parametrize("name", recipe_names())
def test_accuracies_in_descriptions_of_recipes_are_known(name: str) -> None:
    everywhere = {figure for page in PAGES for figure in _known(page)}
    assert figures(read_recipe(name).description) <= everywhere


@pytest.mark.parametrize("name", published_names())
def test_what_a_published_artefact_claims_is_the_result_of_its_command(name: str) -> None:
    claim, card = dd.load(name).claim, (FOLDER / f"{name}.md").read_text("utf-8")
    made = {run["command"]: run for runs in CONTENT["rows"].values() for run in runs}
    (found,) = (run for command, run in made.items() if f"{command} --data-dir DIR" in card)
    assert claim is not None
    assert 100 * claim.mean == pytest.approx(found["mean"])
    assert 100 * claim.std == pytest.approx(found["std"], abs=1e-6)
    assert (claim.data, claim.networks) == (found["data"], found["networks"])
    assert figures(card) <= _forms(found["mean"], found["std"])


def test_recipes_that_were_not_run_say_so_and_stand_on_the_page() -> None:
    said = {name for name in recipe_names() if "Not run yet" in read_recipe(name).description}
    page = SUMMARY.read_text("utf-8").partition("Not run yet, because")[2]
    assert {*re.findall(r"`([\w-]+)`", page.partition("\n\n")[0])} & {*recipe_names()} == said
