"""What distilled images start from, and whose outer schedule they are learned by."""

import math
from typing import Any

import pytest
import torch

import datadistill as dd
from datadistill.baselines import AverageReal, KMeans, Layout, start
from datadistill.core.distilled import Steps
from datadistill.core.settings import DistillerConfig
from datadistill.errors import ConfigError
from datadistill.runs.calls.presets import BEYOND, PAPER
from datadistill.runs.config import RunConfig, config_from
from datadistill.runs.distillation import Distillation
from datadistill.runs.preparation import prepare
from datadistill.runs.recipes import read_recipe, recipe_names

OUTER = (
    *("batch_size", "networks", "outer_lr", "rates_lr", "labels_lr", "betas"),
    *("outer_schedule", "decay", "decay_every", "clip_norm", "clip_factor", "averaging"),
)


def prepared(start: str) -> Distillation:
    train, _ = dd.data.load("digits")
    config = config_from({"start": start, "steps": 2, "images_per_class": 2, "seed": 3})
    return prepare(config, train, dd.models.Linear())


def test_images_start_as_centroids_or_means_of_the_training_data_that_remain() -> None:
    layout = Layout(classes=10, steps=2, images_per_class=2)
    made = prepared("k-means")
    expected = KMeans().draw(made.data, layout, seed=3)
    found = made.images(made.start().distiller)
    assert torch.equal(found.inputs, expected.inputs)
    assert torch.equal(found.labels, expected.labels)
    made = prepared("average")
    assert torch.equal(
        made.images(made.start().distiller).inputs, AverageReal().draw(made.data, layout).inputs
    )
    made = prepared("noise")
    noise = made.images(made.start().distiller).inputs
    assert 0.9 < float(noise.std()) < 1.1


def test_k_means_of_a_large_class_clusters_a_sample_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made = prepared("k-means")
    whole = made.images(made.start().distiller).inputs
    monkeypatch.setattr(start, "MOST", 100)
    clustered: list[torch.Tensor] = []
    steps = KMeans.steps

    def seen(own: KMeans, data: dd.LabelledData, *rest: Any) -> Steps:
        clustered.append(data.labels)
        return steps(own, data, *rest)

    monkeypatch.setattr(KMeans, "steps", seen)
    made = prepared("k-means")
    few = made.images(made.start().distiller).inputs
    assert clustered[0].bincount().tolist() == [100] * 10
    assert not torch.equal(few, whole)
    again = prepared("k-means")
    assert torch.equal(few, again.images(again.start().distiller).inputs)


def test_learning_rates_are_written_with_their_factor_and_learned_without() -> None:
    def ends(**settings: float) -> tuple[torch.Tensor, dd.DistilledData, float]:
        train, _ = dd.data.load("digits")
        config = config_from({"iterations": 2, "batch_size": 32, "networks": 2, **settings})
        made = prepare(config, train, dd.models.Linear())
        state, _ = made.advance(made.start())
        state, _ = made.advance(state)
        best, measured = made.best(state), state.best
        assert best is not None
        assert measured is not None
        for kept, steps in (
            (made.last(state), made.images(state.distiller)),
            (best, measured.steps),
        ):
            assert torch.equal(kept.learning_rates, steps.learning_rates * config.rates_factor)
        assert best.header.claim is not None
        return made.images(state.distiller).learning_rates, best, best.header.claim.mean

    plain, _, _ = ends()
    learned, best, claim = ends(rates_factor=3.0)
    assert torch.equal(learned, plain)  # the factor changes nothing of what is learned
    assert best.header.configuration["rates_factor"] == 3.0
    assert claim != ends()[2]  # what was measured is what is written


def test_objectives_without_classes_start_from_noise_alone() -> None:
    data = torch.randn(20, 4), torch.randn(20, 1)
    with pytest.raises(ConfigError, match="has no classes to start from by k-means"):
        dd.distill(
            data,
            torch.nn.Linear(4, 1),
            objective=dd.Regression(),
            start="k-means",
            iterations=1,
        )


def test_the_preset_paper_is_the_schedule_of_algorithm_1() -> None:
    plain = DistillerConfig()
    assert {n: v for n, v in PAPER.items() if n in OUTER} == {n: getattr(plain, n) for n in OUTER}
    assert {*PAPER} == {*OUTER, *BEYOND, "start", "keep"}
    default = RunConfig()
    assert {name: getattr(default, name) for name in BEYOND} == BEYOND
    ours = RunConfig()
    assert ours.outer_schedule == "cosine"
    for name in recipe_names():
        fast, paper = read_recipe(name).config, read_recipe(name, "paper").config
        assert (fast.data, fast.steps, fast.epochs) == (paper.data, paper.steps, paper.epochs)
        own = {"outer_lr": 0.02} if paper.objective == "poisoning" else {}
        if name.startswith("alexnet") and "features" not in name:  # halved every 30 passes, not 40
            passes = paper.iterations / 200
            own = {"decay_every": math.ceil(30 * passes)}
        assert {n: getattr(paper, n) for n in PAPER} == PAPER | own, name
