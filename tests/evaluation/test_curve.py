import threading

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import datadistill as dd
from datadistill.core.update import Momentum
from datadistill.engine import groups as groups_module
from datadistill.errors import ConfigError
from datadistill.evaluation import DEFAULT_BYTES, Evaluation, HeldOut, train_and_score
from tests.evaluation.helpers import CLASSES, NETWORKS, Problem, alone, problem

OBJECTIVE = dd.Classification()


def run(
    given: Problem, networks: int, seed: int = 0, memory: int = DEFAULT_BYTES, **settings: object
) -> list[Evaluation]:
    return train_and_score(
        given.steps,
        HeldOut(given.network, given.sample, networks, seed, memory),
        given.data,
        OBJECTIVE,
        **settings,  # pyright: ignore[reportArgumentType]
    )


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_in_groups_reach_exactly_what_each_reaches_alone(
    name: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups_module, "LARGEST_GROUP", size)
    given = problem(name)
    for found in run(given, 5, seed=2, after=[0, 3, 4]):
        assert found.updates is not None
        for number in range(5):
            expected = alone(given, 2, number, found.updates)
            assert found.values[number] == expected.value
            assert found.losses[number] == pytest.approx(expected.loss, rel=1e-11)
            by_class = [one.values[number] for one in found.by_class]
            assert by_class == pytest.approx(expected.by_class, rel=1e-12)


@settings(deadline=None, max_examples=12)
@given(
    name=st.sampled_from([*NETWORKS]),
    memory=st.sampled_from([1, 2**21, 2**24, 2**30]),
    networks=st.integers(1, 9),
    seed=st.integers(0, 3),
)
def test_no_bound_of_memory_changes_a_result(
    name: str, memory: int, networks: int, seed: int
) -> None:
    given = problem(name, examples=17)
    found = run(given, networks, seed=seed, memory=memory)[0]
    expected = [alone(given, seed, number, 4) for number in range(networks)]
    assert found.values == tuple(one.value for one in expected)
    assert found.losses == pytest.approx([one.loss for one in expected], rel=1e-11)


def test_several_threads_give_the_same_bits_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups_module, "LARGEST_GROUP", 2)
    given = problem("lenet")
    expected = run(given, 7)
    seen: set[int] = set()

    def watch(_: dd.Progress) -> None:
        seen.add(threading.get_ident())

    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        found = run(given, 7, progress=watch)
    finally:
        torch.set_num_threads(before)
    assert threading.get_ident() not in seen
    assert found == expected


def test_tests_are_made_after_the_updates_asked_for_in_the_order_asked_for() -> None:
    given = problem("mlp")
    found = run(given, 3, after=[4, 0, 2, 4])
    assert [one.updates for one in found] == [4, 0, 2, 4]
    assert found[0] == found[3]
    assert found[0] == run(given, 3)[0]
    assert found[1].losses == pytest.approx([alone(given, 0, j, 0).loss for j in range(3)])


def test_momentum_is_the_rule_that_is_given() -> None:
    given = problem("mlp")
    heavy = run(given, 2, rule=Momentum(0.9))[0]
    assert heavy.losses != run(given, 2)[0].losses
    small = run(given, 2, rule=Momentum(0.9), memory=1)[0]
    assert heavy.losses == pytest.approx(small.losses, rel=1e-11)


def test_progress_counts_the_tests_of_all_networks() -> None:
    seen: list[dd.Progress] = []
    run(problem("mlp"), 20, after=[0, 4], progress=seen.append)
    # 20 networks in four groups of 5, each tested twice.
    assert [p.done for p in seen] == [5, 10, 15, 20, 25, 30, 35, 40]
    assert {p.total for p in seen} == {40}
    assert 0 <= seen[-1].values["accuracy"] <= 1


def test_what_cannot_be_asked_for_is_refused() -> None:
    given = problem("mlp")
    with pytest.raises(ConfigError, match="no update 5"):
        run(given, 1, after=[5])
    with pytest.raises(ConfigError, match="no update -1"):
        run(given, 1, after=[-1])
    with pytest.raises(ConfigError, match="at least 1"):
        run(given, 0)


def test_regression_has_a_loss_and_no_classes() -> None:
    inputs = torch.randn(30, 4, generator=torch.Generator().manual_seed(0))
    targets = inputs.sum(1, keepdim=True)
    network = dd.models.MLP(channels=1, size=2, classes=1, hidden=5)
    given = problem("mlp")
    steps = type(given.steps)(inputs[None, :10], targets[None, :10], torch.full((3, 1), 0.05))
    wrapped = type(given.network)(network, inputs)
    found = train_and_score(
        steps,
        HeldOut(wrapped, lambda g: dd.RandomInit().sample(wrapped, g), networks=4),
        dd.LabelledData(inputs, targets),
        dd.Regression(),
        after=[0, 3],
    )
    assert found[1].by_class == ()
    assert found[1].mean < found[0].mean
    assert found[1].losses == pytest.approx(found[1].values, rel=1e-5)


def test_classes_without_examples_are_left_out() -> None:
    given = problem("mlp")
    data = dd.LabelledData(
        given.data.inputs, given.data.labels.clamp(max=1) * 2, class_names=("a", "b", "c")
    )
    found = run(given._replace(data=data), 2)[0]
    assert CLASSES == 3
    assert [one.name for one in found.by_class] == ["a", "c"]
    assert sum(one.examples for one in found.by_class) == len(data)
