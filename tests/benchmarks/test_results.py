"""The figures are in one file, promises are watched, and the page shows what the file holds."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from benchmarks.results import PAGE, PAGES, Results, kept, machine, markdown, with_tables
from benchmarks.time_to_accuracy import cadence, figures, merged

from benchmarks import __main__ as command

FAST = {"what": "outer step", "ours, s": 0.25, "ratio": 4.0, "at least": 3.0}
SLOW = {"what": "outer step", "ours, s": 0.5, "ratio": 2.0, "at least": 3.0}


def test_the_page_shows_the_figures_of_the_file() -> None:
    for path in PAGES:
        page = path.read_text()
        assert with_tables(page, Results.read()) == page, "run: python -m benchmarks page"


def test_the_page_has_a_place_for_every_benchmark() -> None:
    page, names = PAGE.read_text(), (*command.NAMES, *command.WHEN_ASKED)
    assert [name for name in names if f"<!-- benchmarks: {name} -->\n" not in page] == []


def test_tables_come_between_markers_and_the_prose_around_them_stays(tmp_path: Path) -> None:
    results = Results(tmp_path / "results.json", {})
    results.add("speed", {"rows": [FAST]}, quick=True, on=machine())
    page = "before\n<!-- benchmarks: speed -->\nold\n<!-- end -->\nafter <!-- end -->\n"
    once = with_tables(page, Results.read(results.path))
    assert once.startswith("before\n<!-- benchmarks: speed -->\n| what | ours, s | ratio |")
    assert "| outer step | 0.25 | 4 | at least 3 |" in once
    assert "quick setting.\n<!-- end -->\nafter <!-- end -->\n" in once
    assert "old" not in once
    assert with_tables(once, results) == once


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (FAST, True),
        (SLOW, False),
        ({"ratio": None, "at least": 3.0}, False),
        ({"ratio": 0.2, "at most": 0.25}, True),
        ({"ratio": 0.3, "at most": 0.25}, False),
        ({"ratio": 9.0, "at most": None}, True),
        ({"value": 1}, True),
        ({"ratio": 2.0, "at least": 1, "share of peak, %": 69.0, "share at least": 70}, False),
        ({"ratio": 2.0, "at least": 1, "share of peak, %": 71.0, "share at least": 70}, True),
        ({"ratio": 2.0, "at least": 1, "goal": 3}, True),
    ],
)
def test_a_promise_is_kept_or_missed(row: dict[str, Any], expected: bool) -> None:
    assert kept(row) == expected


def test_a_lower_bound_says_more_than() -> None:
    assert "| > 4.5 | at least 4 |" in markdown(
        [{"ratio": 4.5, "lower bound": True, "at least": 4}]
    )


def test_goals_are_shown_beside_promises_with_those_that_are_not_reached() -> None:
    rows = [{"ratio": one, "at least": 1, "goal": 2} for one in (1.5, 2.5)]
    table = markdown([*rows, {"ratio": 3.0, "at least": 1}]).splitlines()
    assert table[0] == "| ratio | promised | goal |"
    assert table[2] == "| 1.5 | at least 1 | 2 (not reached) |"
    assert table[3] == "| 2.5 | at least 1 | 2 |"
    assert table[4] == "| 3 | at least 1 |  |"


def test_a_run_of_some_keeps_the_figures_of_others_and_fails_where_a_promise_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "results.json"
    Results(path, {}).add("memory", {"rows": [FAST]}, quick=False, on=machine())

    def measure(*, quick: bool) -> dict[str, Any]:
        return {"rows": [FAST if quick else SLOW]}

    monkeypatch.setattr("benchmarks.speed.measure", measure)
    assert command.main(["--only", "speed", "--output", str(path)]) == 1
    assert "missed: speed: what: outer step" in capsys.readouterr().out
    assert command.main(["--quick", "--only", "speed", "--output", str(path)]) == 0
    entries = Results.read(path).entries
    assert entries["memory"]["rows"] == [FAST]
    assert entries["speed"]["rows"] == [FAST]
    assert entries["speed"]["quick"]


def outcome(seed: int, ours: float, theirs: float, *, reached: bool = True) -> dict[str, Any]:
    common = {"outer_steps": 1, "accuracy": 0.9}
    return {
        "case": "fixed",
        "seed": seed,
        "recipe": "mnist-fixed-10",
        "target": 0.9,
        "at_least": 4,
        "ours": {"noise": {"seconds": ours, "wall": ours, "reached": reached, **common}},
        "reference": {"seconds": theirs, "wall": theirs, "reached": theirs < 40, **common},
    }


def test_times_to_accuracy_are_means_over_seeds_and_a_newer_run_replaces_the_same_seed() -> None:
    runs = merged([outcome(0, 9.0, 9.0), outcome(1, 10.0, 50.0)], outcome(0, 5.0, 25.0))
    (row,) = figures(runs)["rows"]
    assert (row["seeds"], row["ours, s"], row["reference, s"]) == (2, 7.5, 37.5)
    assert row["ratio"] == 5
    assert row["lower bound"]
    (row,) = figures([outcome(0, 5.0, 0.0, reached=False)])["rows"]
    assert row["ratio"] is None


def test_measurements_come_at_outer_steps_that_grow_by_a_twentieth() -> None:
    steps = list(itertools.islice(cadence(), 80))
    assert steps[:3] == [5, 6, 7]
    assert all(0 < b - a <= max(1, 0.05 * a + 1) for a, b in itertools.pairwise(steps))
