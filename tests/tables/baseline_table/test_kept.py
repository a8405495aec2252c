"""What is kept of a table: interrupted, finished, of other data, damaged."""

import dataclasses
import importlib
import json
from pathlib import Path
from typing import Any

import pytest
import torch

import datadistill as dd
from datadistill.errors import RunError
from datadistill.evaluation import train_and_score
from datadistill.evaluation.rate_search import EPOCHS
from datadistill.tables import BaselineTable

from .helpers import NETWORKS, Digits, accuracies, parts_of, table_of

context = importlib.import_module("datadistill.tables.context")
references = importlib.import_module("datadistill.tables.references")


class _Counter:
    """Counts the trainings that are finished; can stop one in its middle."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.done, self.stop_at = 0, stop_at

    def __call__(self, *args: Any, **options: Any) -> Any:
        if self.done == self.stop_at:
            raise KeyboardInterrupt
        result = train_and_score(*args, **options)
        self.done += 1
        return result


@pytest.mark.parametrize("stop_at", [9, 38])
def test_a_table_that_was_interrupted_goes_on_where_it_was_and_ends_alike(
    distilled: dd.DistilledData,
    small: Digits,
    whole: tuple[BaselineTable, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stop_at: int,
) -> None:
    path = tmp_path / "results.json"
    path.write_text('{"run": {"accuracy": 0.5}}')
    first, second = _Counter(stop_at), _Counter()
    monkeypatch.setattr(context, "train_and_score", first)
    with pytest.raises(KeyboardInterrupt):
        table_of(distilled, small, path)
    monkeypatch.setattr(context, "train_and_score", second)
    assert table_of(distilled, small, path) == whole[0]
    wanted = json.loads(whole[1].read_text())["baselines"]
    found = json.loads(path.read_text())
    assert found.pop("run") == {"accuracy": 0.5}, "what others wrote stays"
    assert found == {"baselines": wanted}
    trainings = [part for kind in ("trial", "pick", "figure") for part in parts_of(path, kind)]
    assert first.done == stop_at
    assert first.done + second.done == len(trainings) + 1, "nothing is trained twice"


def test_a_finished_table_is_read_and_nothing_is_computed(
    distilled: dd.DistilledData,
    small: Digits,
    whole: tuple[BaselineTable, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(context, "train_and_score", None)
    for name in ("train_on_all", "neighbour_accuracy"):
        monkeypatch.setattr(references, name, None)
    assert table_of(distilled, small, whole[1]) == whole[0]
    claimed = distilled.with_claim(dd.evaluate(distilled, small[1], networks=2).claim())
    assert table_of(claimed, small, whole[1]) == whole[0], "a claim changes no figure"


def changed(
    distilled: dd.DistilledData, data: Digits, what: str
) -> tuple[dd.DistilledData, Digits, dict[str, Any]]:
    train, test = data
    match what:
        case "training data":
            return distilled, (dataclasses.replace(train, inputs=train.inputs.flip(-1)), test), {}  # pyright: ignore
        case "test data":
            return distilled, (train, test.part(torch.arange(79), "test")), {}
        case _:
            return distilled, data, {"seed": 5}


@pytest.mark.parametrize("what", ["training data", "test data", "networks"])
def test_figures_of_anything_else_are_not_taken_over(
    distilled: dd.DistilledData,
    small: Digits,
    whole: tuple[BaselineTable, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    what: str,
) -> None:
    path = tmp_path / "results.json"
    path.write_bytes(whole[1].read_bytes())
    other, data, options = changed(distilled, small, what)
    monkeypatch.setattr(context, "train_and_score", _Counter(stop_at=3))
    with pytest.raises(KeyboardInterrupt):
        table_of(other, data, path, **options)
    known = json.loads(whole[1].read_text())["baselines"]["parts"]
    assert len(json.loads(path.read_text())["baselines"]["parts"]) == len(known) + 3


@pytest.mark.parametrize("part", ["inputs", "learning_rates"])
def test_of_other_distilled_data_only_what_depends_on_them_is_computed(
    distilled: dd.DistilledData,
    small: Digits,
    whole: tuple[BaselineTable, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    part: str,
) -> None:
    path = tmp_path / "results.json"
    path.write_bytes(whole[1].read_bytes())
    steps = dataclasses.replace(distilled.steps, **{part: getattr(distilled, part) * 2})
    other, counter = dataclasses.replace(distilled, steps=steps), _Counter()
    monkeypatch.setattr(context, "train_and_score", counter)
    table = table_of(other, small, path)
    assert table["distilled"].values == (accuracies(other, steps, small[1]),)
    if part == "inputs":
        assert counter.done == 1
    else:  # learned rates are tried for two sets of random and k-means images, and the average
        assert counter.done >= 1 + 2 + 2 + 1
        assert len(parts_of(path, "trial")) == len(parts_of(whole[1], "trial")) + 5
        assert table == table_of(other, small)


HOSTILE: list[Any] = [
    None,
    "0.5",
    {},
    [],
    [0.5],
    [float("nan")] * NETWORKS,
    [2.0] * NETWORKS,
    [-0.1] * NETWORKS,
    ["0.5"] * NETWORKS,
    [[0.5, -1]] * len(EPOCHS),
    [True] * NETWORKS,
    [0.5] * 1000,
]


def test_damaged_parts_are_computed_again(
    distilled: dd.DistilledData, small: Digits, whole: tuple[BaselineTable, Path], tmp_path: Path
) -> None:
    path = tmp_path / "results.json"
    content = json.loads(whole[1].read_text())
    parts = content["baselines"]["parts"]
    for number, name in enumerate(parts):
        bad = HOSTILE[number % len(HOSTILE)]
        one_figure = isinstance(parts[name]["value"], list) and len(parts[name]["value"]) == 1
        if not (one_figure and bad == [0.5]):  # which could be true
            parts[name]["value"] = bad
    parts.update(dict.fromkeys([*parts][:5], 3))
    path.write_text(json.dumps(content))
    assert table_of(distilled, small, path) == whole[0]
    again = json.loads(path.read_text())["baselines"]
    assert again == json.loads(whole[1].read_text())["baselines"]


def test_a_damaged_file_is_an_error_before_anything_is_computed(
    distilled: dd.DistilledData, small: Digits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "results.json"
    path.write_text('{"run": ')
    monkeypatch.setattr(context, "train_and_score", None)
    with pytest.raises(RunError, match="it is not JSON"):
        table_of(distilled, small, path)
