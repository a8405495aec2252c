"""The whole table: what it counts, and what chooses."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch

import datadistill as dd
from datadistill.baselines import AverageReal, KMeans, Layout, RandomReal, neighbour_accuracy
from datadistill.core.distilled import Steps
from datadistill.errors import ConfigError, DataError
from datadistill.evaluation.rate_search import EPOCHS, LEARNING_RATES, Choice, scheduled
from datadistill.tables import BaselineTable, Counts, baseline_table

from .helpers import FEW, GRADIENT_STEPS, Digits, accuracies, parts_of, table_of


def test_the_counts_are_those_of_the_protocol() -> None:
    counts = Counts()
    assert (counts.sets, counts.drawn, counts.kept) == (10, 50, 10)
    assert (counts.picking_networks, counts.examples) == (20, 1024)


def test_every_figure_is_that_of_its_images_at_what_was_chosen(
    distilled: dd.DistilledData, small: Digits, whole: tuple[BaselineTable, Path]
) -> None:
    table, (train, test) = whole[0], small
    rest, _ = train.hold_out(0.1, seed=0)
    layout = Layout(classes=10, steps=2)

    def trained(row: str, steps: Steps) -> tuple[float, ...]:
        rate, epochs = table[row].chosen.removeprefix("lr ").removesuffix("s").split(", ")
        number = int(epochs.removesuffix(" epoch"))
        choice = Choice("learned" if rate == "learned" else float(rate), number)
        return accuracies(distilled, scheduled(steps, choice, distilled.learning_rates), test)

    random = [RandomReal().draw(rest, layout, seed=s) for s in range(FEW.drawn)]
    centroids = [KMeans().draw(rest, layout, seed=s) for s in range(FEW.sets)]
    mean = AverageReal().draw(rest, layout)
    assert table["distilled"].values == (accuracies(distilled, distilled.steps, test),)
    assert table["random real"].values == tuple(trained("random real", s) for s in random[:2])
    assert table["k-means"].values == tuple(trained("k-means", s) for s in centroids)
    assert table["average real"].values == (trained("average real", mean),)
    every = [trained("optimised real", s) for s in random]
    assert all(values in every for values in table["optimised real"].values)
    for row, sets in (("K-NN random real", random[:2]), ("K-NN k-means", centroids)):
        norm, k = table[row].chosen.split(", K = ")
        expected = [neighbour_accuracy(s, test, norm=norm, neighbours=int(k)) for s in sets]  # pyright: ignore[reportArgumentType]
        assert table[row].values == tuple((value,) for value in expected)
    assert [row.name for row in table.rows] == [
        *("untrained", "distilled", *GRADIENT_STEPS),
        *("K-NN random real", "K-NN k-means", "all real"),
    ]


def test_mean_and_deviation_are_over_all_pairs_of_set_and_network(
    whole: tuple[BaselineTable, Path],
) -> None:
    row = whole[0]["random real"]
    assert (row.sets, row.networks) == (2, 3)
    every = torch.tensor(row.values, dtype=torch.float64).flatten()
    assert row.mean == pytest.approx(float(every.sum() / 6))
    assert row.std == pytest.approx(float(((every - row.mean) ** 2).sum() / 5) ** 0.5)
    assert whole[0]["all real"].std is None


def test_the_choice_is_the_best_of_all_rates_and_epochs_and_uses_other_networks(
    whole: tuple[BaselineTable, Path],
) -> None:
    table, path = whole
    for baseline in ("random real", "k-means", "average real"):
        means: dict[str, list[float]] = {}
        for trial in parts_of(path, "trial"):
            key = trial["part"]
            if key["baseline"] != baseline:
                continue
            assert key["seed"] == 1, "the networks that are reported are of seed 0"
            assert key["select"] == "train"
            for epochs, (mean, diverged) in zip(key["epochs"], trial["value"], strict=True):
                assert diverged == 0
                rate = "learned" if key["rate"] == "learned" else f"lr {key['rate']:g}"
                name = f"{rate}, {epochs} epoch{'s' if epochs > 1 else ''}"
                means.setdefault(name, []).append(mean)
        assert len(means) == (1 + len(LEARNING_RATES)) * len(EPOCHS)
        chosen = table[baseline].chosen
        assert sum(means[chosen]) == max(sum(values) for values in means.values())


def test_the_optimised_sets_are_the_best_on_training_data(
    whole: tuple[BaselineTable, Path],
) -> None:
    table, path = whole
    picks = {pick["part"]["set"]: pick["value"][0] for pick in parts_of(path, "pick")}
    assert len(picks) == FEW.drawn
    figures = {
        part["part"]["set"]: tuple(part["value"])
        for part in parts_of(path, "figure")
        if part["part"]["baseline"] == "random real"
    }
    best = sorted(picks, key=lambda number: -picks[number])[: FEW.kept]
    assert set(table["optimised real"].values) == {figures[number] for number in best}


def permuted(data: Digits) -> Digits:
    train, test = data
    order = torch.randperm(len(test), generator=torch.Generator().manual_seed(0))
    return train, dataclasses.replace(test, labels=test.labels[order])


def choosing(path: Path) -> dict[str, list[dict[str, Any]]]:
    """All that was measured to choose or to pick."""
    neighbours = {name: parts_of(path, name) for name in ("K-NN random real", "K-NN k-means")}
    return {
        "trial": parts_of(path, "trial"),
        "pick": parts_of(path, "pick"),
        **{n: [p for p in parts if "select" in p["part"]] for n, parts in neighbours.items()},
    }


def test_the_test_data_choose_nothing(
    distilled: dd.DistilledData, small: Digits, whole: tuple[BaselineTable, Path], tmp_path: Path
) -> None:
    path = tmp_path / "results.json"
    table = table_of(distilled, permuted(small), path)
    assert [row.chosen for row in table.rows] == [row.chosen for row in whole[0].rows]
    assert choosing(path) == choosing(whole[1])
    for row, other in zip(table.rows, whole[0].rows, strict=True):
        assert row.values != other.values, "the figures are of the test data"


def test_the_test_data_choose_where_that_is_asked_for_and_the_table_says_so(
    distilled: dd.DistilledData, small: Digits, whole: tuple[BaselineTable, Path], tmp_path: Path
) -> None:
    found: list[dict[str, Any]] = []
    for number, data in enumerate((small, permuted(small))):
        path = tmp_path / f"{number}.json"
        table = table_of(distilled, data, path, select="test")
        assert table.select == "test"
        assert json.loads(path.read_text())["baselines"]["table"]["select"] == "test"
        found.append(choosing(path))
    for kind in ("trial", "K-NN random real", "K-NN k-means"):
        assert found[0][kind] != found[1][kind]
        assert all(part["part"]["select"] == "test" for part in found[0][kind])


def test_a_fixed_initialization_is_one_network_in_every_figure(
    small: Digits, tmp_path: Path
) -> None:
    fixed = dd.distill(
        small[0], dd.models.MLP(hidden=8), initialization=dd.FixedInit(seed=2), iterations=2
    )
    table = table_of(fixed, small, tmp_path / "results.json", networks=None)
    assert {row.networks for row in table.rows} == {1}
    assert table["distilled"].mean == dd.evaluate(fixed, small[1]).mean
    assert {p["part"]["networks"] for p in parts_of(tmp_path / "results.json", "trial")} == {1}
    with pytest.raises(ConfigError, match="fixed initialization is one network"):
        table_of(fixed, small, networks=2)


def test_stand_ins_are_not_compared_with_the_paper(whole: tuple[BaselineTable, Path]) -> None:
    assert all(row.paper is None for row in whole[0].rows)


def test_progress_of_every_stage_ends_at_its_total(
    distilled: dd.DistilledData, small: Digits
) -> None:
    last: dict[str, dd.Progress] = {}

    def show(progress: dd.Progress) -> None:
        before = last.get(progress.stage)
        assert before is None or before.done <= progress.done <= progress.total
        last[progress.stage] = progress

    table_of(distilled, small, progress=show)
    assert all(progress.done == progress.total for progress in last.values())
    assert {"distilled", *GRADIENT_STEPS, "all real", "K-NN k-means"} <= {*last}
    assert {"random real: choosing", "optimised real: picking"} <= {*last}


def test_what_has_no_baselines_is_refused(distilled: dd.DistilledData, small: Digits) -> None:
    inputs = torch.randn(40, 4, generator=torch.Generator().manual_seed(0))
    data = dd.LabelledData(inputs, inputs.sum(1, keepdim=True))
    regression = dd.distill(
        data, torch.nn.Linear(4, 1), objective=dd.Regression(), steps=1, iterations=1
    )
    with pytest.raises(ConfigError, match="for regression"):
        baseline_table(regression, data, data)
    with pytest.raises(ConfigError, match="at least 1"):
        table_of(distilled, small, networks=0)
    other = dataclasses.replace(small[1], inputs=torch.zeros(80, 3, 32, 32))
    with pytest.raises(DataError, match=r"\(3, 32, 32\)"):
        table_of(distilled, (small[0], other))
    half = small[0].part((small[0].labels < 5).nonzero().flatten(), "train")
    with pytest.raises(DataError, match="no example of class 5"):
        table_of(distilled, (half, small[1]))
