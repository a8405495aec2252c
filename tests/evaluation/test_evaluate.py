import dataclasses
import importlib
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn

import datadistill as dd
from datadistill.core.initialization import networks_for
from datadistill.data.running_statistics import Statistics
from datadistill.errors import ArtefactError, ConfigError, DataError, ModelError
from datadistill.evaluation import FullTraining, learning_curve, train_on_all
from datadistill.evaluation import test_networks as metrics_of
from datadistill.evaluation.validation import Validation
from tests.evaluation.helpers import NETWORKS

testing_module = importlib.import_module("datadistill.engine.testing")

Digits = tuple[dd.LabelledData, dd.LabelledData]


@pytest.fixture(scope="module")
def random(digits: Digits) -> dd.DistilledData:
    return dd.distill(
        digits[0], dd.models.MLP(hidden=8), dtype="float64", steps=2, iterations=5, batch_size=64
    )


@pytest.fixture(scope="module")
def fixed(digits: Digits) -> dd.DistilledData:
    return dd.distill(
        digits[0],
        dd.models.MLP(hidden=32),
        initialization=dd.FixedInit(),
        learning_rate=0.1,
        iterations=5,
    )


def test_networks_side_by_side_are_trained_and_tested_like_each_alone(
    random: dd.DistilledData, digits: Digits
) -> None:
    result = dd.evaluate(random, digits[1], networks=23, seed=3)
    inputs, labels = digits[1].batch(slice(None), torch.device("cpu"), torch.float64)
    network = random.network()
    for number in (0, 7, 22):
        theta0 = random.initial_weights(network, networks_for(3, "held-out network", [number]))
        module = network.module({n: w[0] for n, w in theta0.items()})
        trained = random.train(module, keep_weights=True)
        outputs = trained(inputs).detach()
        assert result.values[number] == float((outputs.argmax(1) == labels).double().mean())
        loss = torch.nn.functional.cross_entropy(outputs, labels)
        assert result.losses[number] == pytest.approx(float(loss), rel=1e-12)
    assert result.mean == pytest.approx(torch.tensor(result.values).double().mean().item())
    assert result.std == pytest.approx(torch.tensor(result.values).double().std().item())


def test_the_number_of_networks_defaults_to_the_protocol(
    random: dd.DistilledData, fixed: dd.DistilledData, digits: Digits
) -> None:
    small = digits[1].part(torch.arange(20), "test")
    assert len(dd.evaluate(random, small).values) == 200
    assert len(dd.evaluate(fixed, small).values) == 1


def test_held_out_networks_are_not_those_of_distillation(random: dd.DistilledData) -> None:
    network = random.network()
    seen = random.initialization.sample(network, networks_for(0, "network", range(20)))
    held_out = random.initialization.sample(network, networks_for(0, "held-out network", range(20)))
    for one in held_out["fc1.weight"]:
        assert not any(torch.equal(one, other) for other in seen["fc1.weight"])


def test_validation_networks_are_not_those_that_are_reported(
    random: dd.DistilledData, digits: Digits, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn, sample = list[Tensor](), dd.RandomInit.sample

    def recorded(self: dd.RandomInit, network: Any, generators: Any) -> Any:
        theta0 = sample(self, network, generators)
        drawn.extend(theta0["fc1.weight"])
        return theta0

    monkeypatch.setattr(dd.RandomInit, "sample", recorded)
    held_out = digits[0].hold_out(0.1, 0)[1]
    Validation(held_out, random.network(), 8).measure(random)
    validating, count = [*drawn], len(drawn)
    dd.evaluate(random, held_out, networks=20)
    assert count == 8
    assert len(drawn) == 28
    for one in validating:
        assert not any(torch.equal(one, reported) for reported in drawn[8:])


def test_data_for_a_fixed_network_can_be_tested_on_random_ones(
    fixed: dd.DistilledData, digits: Digits
) -> None:
    small = digits[1].part(torch.arange(40), "test")
    found = dd.evaluate(fixed.with_initialization(dd.RandomInit()), small, networks=3)
    network = fixed.network()
    theta0 = dd.RandomInit().sample(network, networks_for(0, "held-out network", [2]))
    module = network.module({n: w[0] for n, w in theta0.items()})
    trained = fixed.train(module, keep_weights=True)
    inputs, labels = small.batch(slice(None), torch.device("cpu"), torch.float32)
    assert found.values[2] == float((trained(inputs).argmax(1) == labels).double().mean())
    assert found.note == "random initialization, from data distilled for a fixed one"
    assert dd.evaluate(fixed, small) != found


def test_results_read_well(
    random: dd.DistilledData, fixed: dd.DistilledData, digits: Digits
) -> None:
    assert str(dd.evaluate(random, digits[1], networks=3)).endswith(
        " % on digits test over 3 networks"
    )
    assert "±" in str(dd.evaluate(random, digits[1], networks=3))
    one = str(dd.evaluate(fixed, digits[1]))
    assert one.endswith(" % on digits test")
    assert "±" not in one


def test_what_does_not_fit_is_refused(
    random: dd.DistilledData, fixed: dd.DistilledData, digits: Digits
) -> None:
    with pytest.raises(ConfigError, match="fixed initialization is one network"):
        dd.evaluate(fixed, digits[1], networks=2)
    with pytest.raises(ConfigError, match="at least 1"):
        dd.evaluate(random, digits[1], networks=0)
    with pytest.raises(DataError, match=r"\(3, 32, 32\); the distilled data have \(1, 28, 28\)"):
        dd.evaluate(random, (torch.zeros(4, 3, 32, 32), torch.zeros(4).long()))
    with pytest.raises(DataError, match="labels from 12 to 12, but 10 class names"):
        dd.evaluate(random, (torch.zeros(4, 1, 28, 28), torch.full((4,), 12)))


def test_training_on_all_data_learns_them(fixed: dd.DistilledData, digits: Digits) -> None:
    network, objective = fixed.network(), fixed.objective
    theta0 = fixed.initial_weights(network, networks_for(0, "held-out network", [0]))
    weights = train_on_all(network, theta0, digits[0], objective)
    module = network.module({n: w[0] for n, w in weights.items()})
    inputs, labels = digits[1].batch(slice(None), torch.device("cpu"), torch.float32)
    assert float((module(inputs).argmax(1) == labels).double().mean()) > 0.85


def test_training_on_all_data_sees_their_augmentation(
    fixed: dd.DistilledData, digits: Digits
) -> None:
    drawn: list[float] = []

    def darken(inputs: Any, indices: Tensor, generator: torch.Generator) -> Tensor:
        drawn.append(float(torch.rand((), generator=generator)))
        return inputs[indices] // 2

    augmented = dataclasses.replace(digits[0], augmentation=darken)
    dark = dataclasses.replace(digits[0], inputs=cast("Tensor", digits[0].inputs) // 2)
    network = fixed.network()
    theta0 = fixed.initial_weights(network, networks_for(0, "held-out network", [0]))
    seen, expected = (
        train_on_all(network, theta0, data, fixed.objective, FullTraining(1, batch_size=256))
        for data in (augmented, dark)
    )
    assert len(drawn) == len(set(drawn)) == len(augmented) // 256
    assert all(torch.equal(seen[name], expected[name]) for name in expected)


def test_large_inputs_are_tested_in_smaller_batches_with_the_same_result(
    random: dd.DistilledData, digits: Digits, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = dd.evaluate(random, digits[1], networks=3)
    sizes: list[int] = []
    batch = dd.LabelledData.batch

    def watch(self: dd.LabelledData, indices: slice, *rest: Any) -> Any:
        inputs, labels = batch(self, indices, *rest)
        sizes.append(len(inputs))
        return inputs, labels

    monkeypatch.setattr(dd.LabelledData, "batch", watch)
    monkeypatch.setattr(testing_module, "TEST_BYTES", 50 * 8 * 28 * 28)
    found = dd.evaluate(random, digits[1], networks=3)
    assert max(sizes) == 50
    assert found.values == expected.values
    assert found.losses == pytest.approx(expected.losses, rel=1e-12)


def test_every_class_has_its_own_figure(random: dd.DistilledData, digits: Digits) -> None:
    result = dd.evaluate(random, digits[1], networks=5)
    assert [one.name for one in result.by_class] == [str(digit) for digit in range(10)]
    counts = torch.bincount(digits[1].labels).tolist()
    assert [one.examples for one in result.by_class] == counts
    for j in range(5):
        right = sum(one.examples * one.values[j] for one in result.by_class)
        assert right / len(digits[1]) == pytest.approx(result.values[j], rel=1e-12)
    first = result.by_class[0]
    assert first.mean == pytest.approx(sum(first.values) / 5)
    assert first.std == pytest.approx(torch.tensor(first.values).double().std().item())


def test_the_curve_begins_untrained_and_ends_with_the_evaluation(
    random: dd.DistilledData, digits: Digits
) -> None:
    curve = learning_curve(random, digits[1], networks=4, seed=1)
    updates = len(random.steps.schedule)
    assert [one.updates for one in curve] == [*range(updates + 1)]
    assert curve[-1] == dd.evaluate(random, digits[1], networks=4, seed=1)
    network = random.network()
    theta0 = random.initial_weights(network, networks_for(1, "held-out network", range(4)))
    untrained = metrics_of(network, theta0, digits[1], random.objective, Statistics())
    assert curve[0].values == untrained.values
    few = learning_curve(random, digits[1], networks=4, seed=1, after=[2])
    assert few == [curve[2]]


def test_the_same_data_train_another_architecture(random: dd.DistilledData, digits: Digits) -> None:
    lenet = dd.models.LeNet()
    result = dd.evaluate(random, digits[1], architecture=lenet, networks=3)
    assert str(result).endswith("over 3 networks (lenet, from data distilled for mlp)")
    network = dd.distill(digits[0], lenet, iterations=1, steps=1, validation=0).network()
    theta0 = random.initialization.sample(network, networks_for(0, "held-out network", range(3)))
    trained = random.train_networks(network, theta0)
    expected = metrics_of(network, trained, digits[1], random.objective, Statistics())
    assert result.losses == pytest.approx(expected.losses, rel=1e-4)
    with pytest.raises(ArtefactError, match="does not fit these distilled data"):
        dd.evaluate(random, digits[1], module=lenet, networks=3)


def test_data_for_a_fixed_network_train_random_networks_of_another_architecture(
    fixed: dd.DistilledData, digits: Digits
) -> None:
    result = dd.evaluate(fixed, digits[1], architecture=dd.models.MLP(hidden=9), networks=3)
    assert len(set(result.losses)) == 3
    assert result.note == (
        "mlp, from data distilled for mlp; random xavier-normal weights, not the fixed ones"
    )
    small = digits[1].part(torch.arange(20), "test")
    assert len(dd.evaluate(fixed, small, architecture=dd.models.Linear()).values) == 200


def test_another_architecture_that_does_not_fit_is_refused(
    random: dd.DistilledData, digits: Digits
) -> None:
    with pytest.raises(DataError, match="tells 3 classes"):
        dd.evaluate(random, digits[1], architecture=NETWORKS["lenet"]())
    with pytest.raises(ModelError, match="raised RuntimeError"):
        dd.evaluate(random, digits[1], architecture=nn.Linear(5, 10))
    with pytest.raises(ConfigError, match="Both module and architecture"):
        dd.evaluate(
            random, digits[1], module=dd.models.MLP(hidden=8), architecture=dd.models.LeNet()
        )
    soft = dd.distill(digits[0], dd.models.Linear(), iterations=1, learn_labels=True)
    with pytest.raises(ModelError, match=r"12 output\(s\) for an input, but .* have 10"):
        dd.evaluate(soft, digits[1], architecture=dd.models.Linear(classes=12))


def test_networks_that_diverge_are_reported_as_such(
    random: dd.DistilledData, digits: Digits
) -> None:
    steps = type(random.steps)(random.inputs, random.labels, random.learning_rates * 1e9)
    wild = dd.DistilledData(steps, random.header, random.carried, random.module)
    result = dd.evaluate(wild, digits[1], networks=2)
    assert "% on digits test over 2 networks" in str(result)
