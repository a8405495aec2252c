"""The table of domain adaptation: its rows, who chooses, and what is kept."""

import importlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import datadistill as dd
from datadistill.baselines import AverageReal, Layout
from datadistill.errors import DataError, PoolError
from datadistill.evaluation import HeldOut, train_and_score
from datadistill.evaluation.rate_search import EPOCHS, Choice, scheduled
from datadistill.tables import BaselineTable, Counts, TableSettings, baseline_table
from datadistill.tables.adaptation import check_source

from ..pools.helpers import DATA, IMAGES, LABELS, make, module

FEW = Counts(
    sets=2,
    drawn=3,
    kept=2,
    picking_networks=2,
    choosing_sets=1,
    choosing_networks=3,
    examples=64,
    full_networks=1,
    full_epochs=1,
    few_shot_networks=4,
    few_shot_choosing=1,
    few_shot_updates=(2, 4),
)
SETTINGS = TableSettings(counts=FEW)
TARGET = dd.LabelledData(0.5 * IMAGES.flip(-1) - 0.3, LABELS, name="fog")
TEST = dd.LabelledData(0.5 * IMAGES.flip(-1)[:40] - 0.2, LABELS[:40], name="fog", split="test")
adaptation = importlib.import_module("datadistill.tables.adaptation")


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> dd.Pool:
    return make(tmp_path_factory.mktemp("pools") / "clouds")


def distilled_for(initialization: Any) -> dd.DistilledData:
    return dd.distill(TARGET, module(), steps=2, iterations=2, initialization=initialization)


@pytest.fixture(scope="module")
def table(
    pool: dd.Pool, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dd.DistilledData, BaselineTable, Path]:
    distilled = distilled_for(dd.PoolInit(pool))
    path = tmp_path_factory.mktemp("table") / "results.json"
    return distilled, table_of(distilled, path), path


def table_of(distilled: dd.DistilledData, path: Path | None = None) -> BaselineTable:
    return baseline_table(distilled, TARGET, TEST, source=DATA, settings=SETTINGS, results=path)


def parts_of(path: Path, what: str) -> list[dict[str, Any]]:
    parts = json.loads(path.read_text())["baselines"]["parts"].values()
    return [part for part in parts if part["part"]["what"] == what]


def test_the_rows_are_those_of_the_papers_table(
    pool: dd.Pool, table: tuple[dd.DistilledData, BaselineTable, Path]
) -> None:
    distilled, found, _ = table
    assert [row.name for row in found.rows] == [
        *("no adaptation", "distilled", "random real", "optimised real", "k-means"),
        *("average real", "few-shot adversarial", "full target"),
    ]
    assert (found.source, found.data) == ("clouds", "fog")
    assert (found["few-shot adversarial"].sets, found["few-shot adversarial"].networks) == (1, 4)
    network = distilled.network()
    for number, accuracy in enumerate(found["no adaptation"].values[0]):
        plain = network.module(pool.network("held-out", number))
        inputs, labels = TEST.batch(slice(None), torch.device("cpu"), torch.float32)
        right = plain(inputs).argmax(1) == labels
        assert accuracy == pytest.approx(float(right.double().mean()))
    assert found["distilled"].mean == dd.evaluate(distilled, TEST).mean


def test_training_networks_of_the_pool_choose_and_held_out_ones_are_reported(
    pool: dd.Pool, table: tuple[dd.DistilledData, BaselineTable, Path]
) -> None:
    distilled, _, path = table
    network = distilled.network()
    rest, held_out = TARGET.hold_out(0.1, seed=0)
    mean = AverageReal().draw(rest, Layout(classes=4, steps=2))
    steps = scheduled(mean, Choice(0.3, max(EPOCHS)))
    (trial,) = (
        part
        for part in parts_of(path, "trial")
        if (part["part"]["baseline"], part["part"]["rate"]) == ("average real", 0.3)
    )

    def accuracies(sample: Any) -> list[float]:
        results = train_and_score(
            steps,
            HeldOut(network, sample, networks=3, seed=1),
            held_out,
            distilled.objective,
            after=[epochs * 2 for epochs in EPOCHS],
        )
        return [result.mean for result in results]

    def training(generators: Any) -> Any:
        return dd.PoolInit(pool).sample(network, generators)

    assert [mean for mean, _ in trial["value"]] == pytest.approx(accuracies(training))
    assert trial["part"]["from"] == "training networks of the pool"
    chosen = [p for p in parts_of(path, "few-shot adversarial") if "select" in p["part"]]
    assert {p["part"]["from"] for p in chosen} == {"training networks of the pool"}


def test_a_finished_table_is_read_and_nothing_is_adapted_again(
    table: tuple[dd.DistilledData, BaselineTable, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    distilled, found, path = table
    monkeypatch.setattr(adaptation, "adapt_few_shot", None)
    assert table_of(distilled, path) == found


def test_other_source_data_are_adapted_from_anew(
    table: tuple[dd.DistilledData, BaselineTable, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    distilled, _, path = table
    monkeypatch.setattr(adaptation, "adapt_few_shot", None)
    other = replace(DATA, inputs=IMAGES + 1)
    with pytest.raises(TypeError, match="not callable"):
        baseline_table(distilled, TARGET, TEST, source=other, settings=SETTINGS, results=path)


def test_one_pre_trained_network_is_adapted_with_several_sets(pool: dd.Pool) -> None:
    found = table_of(distilled_for(pool.fixed(3)))
    row = found["few-shot adversarial"]
    assert (row.sets, row.networks) == (FEW.sets, 1)


def test_the_source_must_be_what_the_pool_was_made_of(pool: dd.Pool, tmp_path: Path) -> None:
    fixed = distilled_for(pool.fixed(3))
    check_source(fixed, pool, DATA)
    with pytest.raises(DataError, match="not those that the networks"):
        check_source(fixed, pool, replace(DATA, inputs=IMAGES + 1))
    other = make(tmp_path / "other", networks=4, held_out=1, seed=7)
    with pytest.raises(PoolError, match="not number 3"):
        check_source(fixed, other, DATA)
