import importlib
from typing import Any

import pytest
import torch

import datadistill as dd
from datadistill.baselines import random_real
from datadistill.core.distilled import Steps
from datadistill.core.initialization import networks_for
from datadistill.core.network import Network
from datadistill.errors import ConfigError, DataError
from datadistill.evaluation import metric_of, search, train_on_all, with_rate

# `datadistill.evaluation.evaluate` is the function; this is the module.
evaluate_module = importlib.import_module("datadistill.evaluation.evaluate")

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


def test_progress_counts_networks(random: dd.DistilledData, digits: Digits) -> None:
    seen: list[dd.Progress] = []
    dd.evaluate(random, digits[1], networks=45, progress=seen.append)
    assert [p.done for p in seen] == [20, 40, 45]


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
    monkeypatch.setattr(evaluate_module, "TEST_BYTES", 50 * 8 * 28 * 28)
    found = dd.evaluate(random, digits[1], networks=3)
    assert max(sizes) == 50
    assert found.values == expected.values
    assert found.losses == pytest.approx(expected.losses, rel=1e-12)


def test_the_search_takes_the_lowest_error_of_regression() -> None:
    inputs = torch.randn(60, 4, generator=torch.Generator().manual_seed(0))
    targets = inputs.sum(1, keepdim=True)
    network, objective = Network(torch.nn.Linear(4, 1), inputs), dd.Regression()
    theta0 = network.stack([network.weights])
    steps = Steps(inputs[None, :20], targets[None, :20], torch.ones(1, 1))
    data = dd.LabelledData(inputs, targets)
    rates = (1e-6, 0.1)
    assert search([steps], network, theta0, data, objective, rates=rates) == (0.1, 5)


def test_what_does_not_fit_is_refused(
    random: dd.DistilledData, fixed: dd.DistilledData, digits: Digits
) -> None:
    with pytest.raises(ConfigError, match="fixed initialization is one network"):
        dd.evaluate(fixed, digits[1], networks=2)
    with pytest.raises(ConfigError, match="at least 1"):
        dd.evaluate(random, digits[1], networks=0)
    with pytest.raises(DataError, match=r"\(3, 32, 32\); the distilled data have \(1, 28, 28\)"):
        dd.evaluate(random, (torch.zeros(4, 3, 32, 32), torch.zeros(4).long()))
    with pytest.raises(DataError, match="labels run from 12"):
        dd.evaluate(random, (torch.zeros(4, 1, 28, 28), torch.full((4,), 12)))


def test_the_search_takes_the_rate_and_epochs_that_are_best_on_the_data_given(
    fixed: dd.DistilledData, digits: Digits
) -> None:
    network, objective = fixed.network(), fixed.objective
    theta0 = fixed.initial_weights(network, networks_for(0, "held-out network", [0]))
    sets = [random_real(digits[0], network, classes=10, seed=s) for s in range(3)]
    rates = (1e-4, 0.05, 1e6)
    rate, epochs = search(sets, network, theta0, digits[1], objective, rates=rates)
    means = {
        (r, e): sum(
            metric_of([with_rate(s, r, e) for s in sets], network, theta0, digits[1], objective)
        )
        for r in rates
        for e in (1, 3, 5)
    }
    assert means[rate, epochs] == max(means.values())
    assert rate == 0.05


def test_random_real_images_are_real_of_every_class_and_drawn_by_seed(
    fixed: dd.DistilledData, digits: Digits
) -> None:
    train, network = digits[0], fixed.network()
    steps = random_real(train, network, classes=10, steps=3, images_per_class=2, seed=1)
    assert steps.labels.tolist() == [[*range(10)] * 2] * 3
    real, labels = train.batch(slice(None), torch.device("cpu"), torch.float32)
    found: set[int] = set()
    images = steps.inputs.flatten(0, 1)
    for image, label in zip(images, steps.labels.flatten(), strict=True):
        matches = (real == image).flatten(1).all(1).nonzero().flatten()
        assert labels[matches[0]] == label
        found.add(int(matches[0]))
    assert len(found) == 60
    other = random_real(train, network, classes=10, steps=3, images_per_class=2, seed=2)
    assert not torch.equal(steps.inputs, other.inputs)
    with pytest.raises(DataError, match="examples; 1000 are needed"):
        random_real(train, network, classes=10, steps=1000)


def test_training_on_all_data_learns_them(fixed: dd.DistilledData, digits: Digits) -> None:
    network, objective = fixed.network(), fixed.objective
    theta0 = fixed.initial_weights(network, networks_for(0, "held-out network", [0]))
    weights = train_on_all(network, theta0, digits[0], objective)
    module = network.module({n: w[0] for n, w in weights.items()})
    inputs, labels = digits[1].batch(slice(None), torch.device("cpu"), torch.float32)
    assert float((module(inputs).argmax(1) == labels).double().mean()) > 0.85
