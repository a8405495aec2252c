import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import datadistill as dd
from datadistill.core.initialization import networks_for
from datadistill.core.random import stream
from datadistill.engine import groups as groups_module
from datadistill.errors import ConfigError
from datadistill.evaluation import OrdinaryTraining, evaluate_ordinary
from tests.evaluation.helpers import Awkward

Digits = tuple[dd.LabelledData, dd.LabelledData]


@pytest.fixture(scope="module", params=["lenet", "awkward"])
def distilled(request: pytest.FixtureRequest, digits: Digits) -> dd.DistilledData:
    few = digits[0].labels < 3
    data = dd.LabelledData(
        digits[0].batch(few, torch.device("cpu"), torch.float64)[0], digits[0].labels[few]
    )
    module: nn.Module = dd.models.LeNet(classes=3) if request.param == "lenet" else Awkward()
    return dd.distill(data, module, dtype="float64", steps=3, iterations=2, batch_size=32)


@pytest.fixture(scope="module")
def data(digits: Digits) -> dd.LabelledData:
    few = digits[1].labels < 3
    inputs = digits[1].batch(few, torch.device("cpu"), torch.float64)[0]
    return dd.LabelledData(inputs, digits[1].labels[few], name="digits", split="test")


def by_torch(
    distilled: dd.DistilledData, data: dd.LabelledData, training: OrdinaryTraining, number: int
) -> tuple[float, float]:
    """One network with torch's own optimizers: accuracy and loss."""
    network = distilled.network()
    theta0 = distilled.initial_weights(network, networks_for(4, "held-out network", [number]))
    module = network.module({n: w[0] for n, w in theta0.items()})
    if training.optimizer == "sgd":
        optimizer: Any = torch.optim.SGD(module.parameters(), lr=training.rate, momentum=0.9)
    else:
        optimizer = torch.optim.Adam(module.parameters(), lr=training.rate)
    inputs, labels = distilled.inputs.flatten(0, 1).double(), distilled.labels.flatten()
    for epoch in range(training.epochs):
        order = torch.randperm(9, generator=stream(4, "ordinary training", number, epoch))
        for begin in range(0, 9, training.batch_size):
            chosen = order[begin : begin + training.batch_size]
            optimizer.zero_grad()
            F.cross_entropy(module(inputs[chosen]), labels[chosen]).backward()
            optimizer.step()
    assert isinstance(data.inputs, Tensor)
    with torch.no_grad():
        outputs = module(data.inputs)
    right = (outputs.argmax(1) == data.labels).double()
    return float(right.mean()), float(F.cross_entropy(outputs, data.labels))


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize(
    "training", [OrdinaryTraining(epochs=3, batch_size=4), OrdinaryTraining("adam", 0.01, 2, 50)]
)
def test_each_network_is_trained_as_by_torchs_own_optimizer_in_an_order_of_its_own(
    distilled: dd.DistilledData,
    data: dd.LabelledData,
    training: OrdinaryTraining,
    size: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(groups_module, "LARGEST_GROUP", size)
    found = evaluate_ordinary(distilled, data, training, networks=3, seed=4)
    for number in range(3):
        value, loss = by_torch(distilled, data, training, number)
        assert found.values[number] == value
        assert found.losses[number] == pytest.approx(loss, rel=1e-9)
    assert found.updates == training.epochs * math.ceil(9 / training.batch_size)


def test_real_images_train_a_network_in_the_ordinary_way(
    distilled: dd.DistilledData, data: dd.LabelledData, digits: Digits
) -> None:
    """So would distilled ones, if they were real: the training itself works."""
    train = digits[0]
    chosen = torch.cat([(train.labels == label).nonzero()[:10, 0] for label in range(3)])
    inputs, labels = train.batch(chosen, torch.device("cpu"), torch.float32)
    steps = type(distilled.steps)(
        inputs.unflatten(0, (3, 10)), labels.unflatten(0, (3, 10)), torch.ones(1, 3)
    )
    real = dd.DistilledData(steps, distilled.header, distilled.carried, distilled.module)
    assert evaluate_ordinary(real, data, networks=3).mean > 0.9


def test_the_result_says_how_it_was_trained(
    distilled: dd.DistilledData, data: dd.LabelledData
) -> None:
    training = OrdinaryTraining("adam", epochs=1)
    found = evaluate_ordinary(distilled, data, training, networks=2)
    assert str(found).endswith(
        "over 2 networks (ordinary training: adam, lr 0.001, 1 epochs, minibatches of 10)"
    )
    other = evaluate_ordinary(
        distilled, data, training, networks=2, architecture=dd.models.Linear(classes=3)
    )
    assert "; linear, from data distilled for " in other.note


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"optimizer": "lbfgs"}, "no optimizer 'lbfgs'"),
        ({"lr": 0.0}, "lr is 0.0"),
        ({"lr": math.nan}, "lr is nan"),
        ({"epochs": 0}, "epochs is 0"),
        ({"batch_size": 0}, "batch_size is 0"),
    ],
)
def test_settings_out_of_range_are_refused(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        OrdinaryTraining(**setting)
