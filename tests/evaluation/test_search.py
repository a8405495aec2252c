"""Choosing a learning rate and a number of epochs."""

import functools
import math

import pytest
import torch

import datadistill as dd
from datadistill.core.distilled import Steps
from datadistill.core.network import Network
from datadistill.evaluation import HeldOut, train_and_score
from datadistill.evaluation.rate_search import (
    EPOCHS,
    LEARNING_RATES,
    Choice,
    Rate,
    Score,
    best,
    scheduled,
    search,
)

STEPS = Steps(torch.zeros(4, 2, 3), torch.zeros(4, 2).long(), torch.ones(1, 4))


def test_the_choices_are_those_of_the_paper() -> None:
    assert LEARNING_RATES == (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
    assert EPOCHS == (1, 3, 5)


def test_every_set_is_trained_once_with_every_rate_and_the_best_mean_wins() -> None:
    seen: list[tuple[int, Rate]] = []
    progress: list[dd.Progress] = []

    def measure(number: int, rate: Rate) -> dict[int, Score]:
        seen.append((number, rate))
        good = {"learned": 0.5, 0.1: 0.6, 0.3: 0.4}[rate]
        return {1: Score(good), 3: Score(good + 0.2 - number * 0.1), 5: Score(good)}

    rates: tuple[Rate, ...] = ("learned", 0.1, 0.3)
    choice = search(measure, sets=2, rates=rates, progress=progress.append)
    assert choice == (0.1, 3)
    assert sorted(map(str, seen)) == sorted(str((n, r)) for n in (0, 1) for r in rates)
    assert [(p.done, p.total) for p in progress] == [(n, 6) for n in range(1, 7)]


def test_a_rate_at_which_networks_diverge_does_not_win() -> None:
    scores = {"calm": [Score(0.1)], "wild": [Score(0.9, diverged=1)], "nan": [Score(math.nan)]}
    assert best(scores) == "calm"
    assert best({**scores, "calm": [Score(0.0)]}) == "calm"
    assert best(scores, higher_is_better=False) == "calm"


def test_where_all_diverge_the_one_with_the_fewest_wins() -> None:
    assert best({1: [Score(0.9, 3)], 2: [Score(0.1, 2)], 3: [Score(math.nan, 5)]}) == 2


def test_of_equal_choices_the_first_wins() -> None:
    assert best({"a": [Score(0.5)], "b": [Score(0.5)]}) == "a"


def test_networks_that_really_diverge_are_counted() -> None:
    images = torch.randn(60, 4, generator=torch.Generator().manual_seed(0))
    labels = (images.sum(1) > 0).long()
    network = Network(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 2)), images)
    steps = Steps(images[None, :20], labels[None, :20], torch.ones(1, 1))
    for rate, diverged in ((0.1, 0), (1e30, 3)):
        (result,) = train_and_score(
            scheduled(steps, Choice(rate, 3)),
            HeldOut(network, functools.partial(dd.RandomInit().sample, network), networks=3),
            dd.LabelledData(images, labels),
            dd.Classification(),
        )
        assert Score.of(result) == (result.mean, diverged)


def test_the_search_takes_the_lowest_error_of_regression() -> None:
    inputs = torch.randn(60, 4, generator=torch.Generator().manual_seed(0))
    targets = inputs.sum(1, keepdim=True)
    network, objective = Network(torch.nn.Linear(4, 1), inputs), dd.Regression()
    steps = Steps(inputs[None, :20], targets[None, :20], torch.ones(1, 1))

    def measure(number: int, rate: Rate) -> dict[int, Score]:
        results = train_and_score(
            scheduled(steps, Choice(rate, 5)),
            HeldOut(network, functools.partial(dd.RandomInit().sample, network), networks=2),
            dd.LabelledData(inputs, targets),
            objective,
            after=EPOCHS,
        )
        return {e: Score.of(result) for e, result in zip(EPOCHS, results, strict=True)}

    rates = (1e-6, 0.1, 1e6)
    found = search(measure, sets=1, rates=rates, higher_is_better=objective.higher_is_better)
    assert found == (0.1, 5)


def test_a_fixed_rate_is_that_of_every_update() -> None:
    rates = scheduled(STEPS, Choice(0.03, 5)).learning_rates
    assert torch.equal(rates, torch.full((5, 4), 0.03))


def test_learned_rates_are_used_as_they_are_and_those_of_the_last_epoch_go_on() -> None:
    learned = torch.arange(12.0).reshape(3, 4)
    for epochs in (1, 3):
        found = scheduled(STEPS, Choice("learned", epochs), learned)
        assert torch.equal(found.learning_rates, learned[:epochs])
        assert found.inputs is STEPS.inputs
    more = scheduled(STEPS, Choice("learned", 5), learned).learning_rates
    assert torch.equal(more, torch.cat([learned, learned[-1:], learned[-1:]]))


def test_learned_rates_are_not_made_up_where_there_are_none() -> None:
    with pytest.raises(ValueError, match="no learned learning rates"):
        scheduled(STEPS, Choice("learned", 1))
