"""The page of a run, as text: what stands on it, where it goes, what it keeps."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import datadistill as dd
from datadistill.data.decoding import Category, Decoder, Number, table_decoder
from datadistill.errors import FileError, RunError
from datadistill.report import making, telling
from datadistill.report.charts import Line, log_ticks, ticks
from datadistill.report.grid import grid_of
from datadistill.report.story import Story

from ..cli.helpers import run as command
from ..runs.helpers import go, stop_after

OLD = Path(__file__).parents[1] / "tables" / "made_by_0_1_0"
CLASSES = 4
SHOWN = "_repr_html_"  # what a notebook calls
DATA = torch.rand(80, 1, 6, 6), torch.arange(80) % CLASSES
TINY: dict[str, Any] = {"iterations": 2, "networks": 1, "batch_size": 16, "validation": 0.2}


def tiny(run: Path, **settings: Any) -> str:
    """The page of a tiny run."""
    dd.distill(DATA, "linear", run=run, test=DATA, **TINY | settings)
    return dd.report(run, test=DATA, networks=1).path.read_text(encoding="utf-8")


def test_distil_names_the_page_and_report_measures_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--data", "digits", "--model", "linear", "--iterations", "2", "--batch-size", "16")
    machine = ("--threads", "1", "--processes", "1", "--initialization", "fixed")
    run = tmp_path / "run"
    assert command("distill", *flags, *machine, "--run", str(run)) == 0
    told = capsys.readouterr()
    assert f"report: {run / 'report.html'}" in told.out
    assert f"datadistill report {run}" in told.err
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "not measured yet" in page
    assert "<h3>Accuracy after every update</h3>" not in page
    assert command("report", str(run)) == 0
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "not measured" not in page
    assert "digits test, 360 examples; 1 Linear network, fixed initialization, seed 0" in page
    kept = json.loads((run / "results.json").read_text())["report"]
    assert [point["updates"] for point in kept["curve"]] == [0, 1, 2, 3]
    assert sum(map(sum, kept["after"])) == 360
    right = sum(kept["after"][c][c] for c in range(10)) / 360
    assert right == pytest.approx(kept["curve"][-1]["mean"])
    assert f"datadistill distill {run}/config.yaml" in page


def test_what_was_measured_is_kept_as_long_as_the_artefact_is_the_same(tmp_path: Path) -> None:
    tiny(tmp_path)
    page = dd.report(tmp_path).path.read_text(encoding="utf-8")  # the data are gone
    assert "Accuracy after every update" in page
    results = json.loads((tmp_path / "results.json").read_text())
    results["report"]["sha256"] = "0" * 64
    (tmp_path / "results.json").write_text(json.dumps(results))
    page = dd.report(tmp_path).path.read_text(encoding="utf-8")
    assert "the confusion matrix are not measured:" in page
    assert "make the same dd.distill call" in page


def test_an_unfinished_run_has_a_page_that_watch_keeps_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, **stop_after(4))
    page = tmp_path / "report.html"
    seen: list[str] = []

    def pause(_seconds: float) -> None:
        seen.append(page.read_text(encoding="utf-8"))
        go(tmp_path)

    monkeypatch.setattr(making.time, "sleep", pause)
    making.watch(tmp_path, page)
    (before,) = seen
    assert "4 of 12 outer steps" in before
    assert '<html lang="en" data-live>' in before
    after = page.read_text(encoding="utf-8")
    assert "data-live>" not in after
    assert "not finished" not in after
    assert after.count('class="cell"') == 20


def test_several_runs_stand_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny(tmp_path / "one", learning_rate=0.125)
    tiny(tmp_path / "other", learning_rate=0.25, steps=2)
    monkeypatch.chdir(tmp_path)
    assert command("report", "one", "other", "--figures", "figures", "--quiet") == 0
    page = Path("report.html").read_text(encoding="utf-8")
    assert "2 runs side by side" in page
    assert "<code>learning_rate</code></th><td><bdi>0.125</bdi></td><td><bdi>0.25</bdi>" in page
    assert page.count('<details class="run"') == 2
    assert {path.name for path in Path("figures").iterdir()} >= {"curve.png", "reached.svg"}
    assert "Settings that differ" in page


def test_poisoning_and_adaptation_show_what_matters_there(tmp_path: Path) -> None:
    page = tiny(tmp_path / "attack", objective=dd.Poisoning(1, 2))
    assert "What the attack does" in page
    assert "1 called 2" in page
    assert "Confusion matrix before any update" in page
    assert "%</strong> accuracy on modified labels on " in page
    assert page.index("What the attack does") < page.index("The distilled images")
    for name in ("adaptation.safetensors", "adaptation.results.json"):
        shutil.copy(OLD / name, tmp_path)
    made = dd.report(tmp_path / "adaptation.safetensors")
    page = made.path.read_text(encoding="utf-8")
    assert made.path == tmp_path / "adaptation.html"
    assert "Networks of <bdi>the pool" in page
    assert "few-shot adversarial" in page  # of the baselines that results.json holds
    rows = json.loads((OLD / "adaptation.results.json").read_text())["baselines"]["table"]["rows"]
    for name, where in (("no adaptation", "without adaptation"), ("full target", "on all real")):
        assert re.search(rf"For comparison: .*{100 * rows[name]['mean']:.1f}\S* .*{where}", page)
    assert "An artefact alone names no data." in page


def test_soft_labels_and_inputs_that_are_no_images_are_shown(tmp_path: Path) -> None:
    page = tiny(tmp_path / "soft", parametrisation="soft-labels", learning_rate=1.0)
    assert "<small>" in page
    assert page.count("data-soft='[[") == page.count('class="shares"') == CLASSES
    vectors = torch.rand(60, 7), torch.arange(60) % 3
    run = tmp_path / "vectors"
    dd.distill(vectors, "linear", run=run, **TINY)
    assert dd.report(run).path.read_text(encoding="utf-8").count('class="cell"') == 3


def test_the_first_weight_of_a_soft_label_is_that_of_its_class(tmp_path: Path) -> None:
    distilled = dd.distill(DATA, "linear", labels="soft", run=tmp_path, **TINY)
    labels = torch.tensor([[2.0, -1.0, 0.0, 0.5], [-3.0, 1.0, 0.5, 0.0]]).repeat(1, 2, 1)
    steps = replace(distilled.steps, labels=labels)
    first, second, *_ = grid_of(replace(distilled, steps=steps), 2**20).rows[0].lines[0]
    assert (first.label, first.soft[0]) == ("0", ("0", 2.0))
    assert (second.label, second.soft[0]) == ("1", ("1", 1.0))
    assert second.soft[-1] == ("0", -3.0)


def test_bands_of_shares_stay_between_0_and_1() -> None:
    line = Line.banded("", [0, 1], [0.1, 0.95], [0.2, 0.1], shares=True, dots=True)
    assert (line.low, line.high) == ([0.0, pytest.approx(0.85)], [pytest.approx(0.3), 1.0])
    loss = Line.banded("", [0], [0.1], [0.2], shares=False, dots=True)
    assert loss.low == [pytest.approx(-0.1)]


def test_tables_are_shown_as_they_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = Number("age <i>", 40.0, 10.0), Category("work", ("none", "office"))

    def decoder(_data: str, _folder: Path | None) -> Decoder:
        return table_decoder(columns)

    monkeypatch.setattr(making, "decoder_of", decoder)
    data = torch.rand(60, 3), torch.arange(60) % 2
    dd.distill(data, "linear", run=tmp_path, **TINY)
    page = dd.report(tmp_path).path.read_text(encoding="utf-8")
    assert "distilled into 2 examples" in page
    assert "<h2>The distilled examples</h2>" in page
    assert '<th scope="col">age &lt;i&gt;</th><th scope="col">work</th>' in page
    assert page.count("<bdi>none</bdi>") + page.count("<bdi>office</bdi>") == 2


def test_a_file_that_is_no_report_is_not_replaced(tmp_path: Path) -> None:
    tiny(tmp_path / "run")
    mine = tmp_path / "mine.html"
    mine.write_text("my own page")
    with pytest.raises(FileError, match="is not a report"):
        dd.report(tmp_path / "run", output=mine)
    assert mine.read_text() == "my own page"
    with pytest.raises(RunError, match="There is no"):
        dd.report(tmp_path / "nothing")


def test_figures_for_papers_say_what_they_were_measured_with(tmp_path: Path) -> None:
    tiny(tmp_path / "run")
    assert command("report", str(tmp_path / "run"), "--figures", str(tmp_path / "f")) == 0
    names = {path.name for path in (tmp_path / "f").iterdir()}
    drawn = {"curve", "confusion", "rates", "loss", "held-out", "images"}
    assert {f"{name}{suffix}" for name in drawn for suffix in (".png", ".svg")} <= names
    text = (tmp_path / "f" / "curve.svg").read_text()
    assert "1 Linear network, random initialization, seed" in text
    assert "**curve** Accuracy after every update." in (tmp_path / "f" / "captions.md").read_text()


@pytest.mark.parametrize("dark", [False, True])
def test_an_overview_shows_the_images_beside_what_they_do(tmp_path: Path, dark: bool) -> None:
    for name in ("adaptation.safetensors", "adaptation.results.json"):
        shutil.copy(OLD / name, tmp_path)
    artefact, figures = str(tmp_path / "adaptation.safetensors"), tmp_path / "figures"
    assert command("report", artefact, "--figures", str(figures), "--quiet") == 0
    drawn = (figures / ("overview-dark.svg" if dark else "overview.svg")).read_text()
    rows = json.loads((OLD / "adaptation.results.json").read_text())["baselines"]["table"]["rows"]
    for name in ("no adaptation", "distilled", "random real", "full target"):
        assert f"{100 * rows[name]['mean']:.1f}" in drawn
    assert "<image" in drawn
    assert "k-means" not in drawn
    assert ("#0d1117" in drawn) == dark
    assert "**overview** " in (figures / "captions.md").read_text()


def test_objects_show_themselves_in_notebooks_and_escape_names(tmp_path: Path) -> None:
    data = dd.LabelledData(*DATA, class_names=("<b>", "two", "three", "four"))
    distilled = dd.distill(data, "linear", test=data, **TINY)
    shown = getattr(distilled, SHOWN)()
    assert shown.count("<img ") == CLASSES
    assert "<th>&lt;b&gt;</th>" in shown
    assert "<b>" not in shown
    evaluation = dd.evaluate(distilled, data, networks=2)
    assert "&lt;b&gt;" in getattr(evaluation, SHOWN)()
    assert getattr(evaluation, SHOWN)().count(" ± ") == CLASSES + 1
    assert "±" not in getattr(dd.evaluate(distilled, data, networks=1), SHOWN)()
    tiny(tmp_path)
    frame = getattr(dd.report(tmp_path), SHOWN)()
    assert frame.startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;')


def test_long_lines_are_binned_and_ticks_are_round() -> None:
    line = Line.binned("", range(10_000), [float(n % 7) for n in range(10_000)])
    assert len(line.x) <= 150
    assert line.x[-1] == 9_999
    assert (min(line.low), max(line.high)) == (0.0, 6.0)
    assert ticks(0.0, 1.0) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert ticks(3.0, 3.0) == [3.0]
    assert log_ticks(0.5, 3.0) == pytest.approx([0.5, 1, 2])


def test_captions_count_the_networks_of_every_run_and_one_rate_needs_no_chart(
    digits_run: Path,
) -> None:
    story = Story.of(digits_run)
    single = [
        row.model_copy(update={"held_out": row.held_out.model_copy(update={"networks": 1})})
        for row in story.rows
        if row.held_out
    ]
    networks = {row.held_out.networks for row in story.rows if row.held_out}
    one = replace(story, rows=tuple(single))
    chart = telling.held_out([one, story])
    assert chart
    assert f"held out, 1 and {networks.pop()} networks, with a band" in chart.caption
    alone = telling.held_out([one])
    assert alone
    assert "held out, 1 network. " in alone.caption
    assert telling.rates(story)
    assert story.distilled
    steps = story.distilled.steps
    short = replace(steps, inputs=steps.inputs[:1], labels=steps.labels[:1])
    short = replace(short, learning_rates=steps.learning_rates[:1, :1])
    assert telling.rates(replace(story, distilled=replace(story.distilled, steps=short))) is None
