"""The ablation of what lies beyond the paper: every run once, kept as soon as it is there."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from benchmarks.beyond import ABLATIONS, ADDED, NAME, TAKEN, Ablation, figures, main
from benchmarks.results import Results, with_tables

from benchmarks import beyond
from datadistill.core.adjoint import Adjoint
from datadistill.core.parametrisation import Parametrisation
from datadistill.runs.seams import make, make_rule, make_view

SMALL = Ablation("digits-fixed", 20, 1, {})


@pytest.mark.parametrize("which", ABLATIONS)
def test_every_run_has_settings_that_can_be_made_and_differ(which: str) -> None:
    ablation = ABLATIONS[which]
    configs = {what: ablation.config(what, 7) for what in ablation.cells()}
    assert len(configs) == 2 + len(ADDED) + len(ablation.own) + len(TAKEN)
    for config in configs.values():
        assert (config.iterations, config.steps * config.images_per_class) == (7, 10)
        make(Adjoint, config)
        make(Parametrisation, config)
        make_rule(config)
        make_view(config)
    assert len({str(config.mapping()) for config in configs.values()}) == len(configs)


def entry(path: Path) -> Mapping[str, Any]:
    return Results.read(path).entries[NAME]


def test_a_run_is_made_once_and_the_page_has_its_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(beyond, "ABLATIONS", {"small": SMALL})
    monkeypatch.setattr(beyond, "ADDED", {"soft labels": ADDED["soft labels"]})
    monkeypatch.setattr(beyond, "TAKEN", {"running mean": TAKEN["running mean"]})
    output = tmp_path / "results.json"
    words = ["small", "--output", str(output), "--scale", "0.1", "--seeds", "1"]
    main(words)
    first = entry(output)
    assert [row["settings"] for row in first["rows"]] == [
        *("default", "+ soft labels", "best", "best − running mean")
    ]
    assert {row["outer steps"] for row in first["rows"]} == {2}
    assert len({str(found) for found in first["runs"].values()}) > 1
    capsys.readouterr()
    main(words)  # there is nothing left to do
    assert capsys.readouterr().out == ""
    assert entry(output) == first
    page = with_tables("<!-- benchmarks: beyond -->\n<!-- end -->", Results.read(output))
    assert "| digits-fixed | 2 | best − running mean |" in page


def test_deviations_are_over_networks_and_over_seeds() -> None:
    (row,) = figures({"mnist-random-100, 20: best": [[0.8, 0.9], [0.7, 0.8]]})["rows"]
    assert row["held-out training data, %"] == "80.0 ± 8.2"
    assert row["± over seeds"] == "7.1"
    assert row["seeds × networks"] == "2 × 2"
