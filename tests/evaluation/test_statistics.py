"""Which running statistics figures are measured with, and that claims say so."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

import datadistill as dd
from datadistill.artefact.header import Claim
from datadistill.errors import DataError

from ..models.own_networks import BatchNorm
from ..models.test_own_networks import accuracy

Digits = tuple[dd.LabelledData, dd.LabelledData]


@pytest.fixture(scope="module")
def digits8() -> Digits:
    train, test = dd.data.load("digits", size=8)
    return train.part(torch.arange(300), "train"), test.part(torch.arange(90), "test")


@pytest.fixture(scope="module")
def made(digits8: Digits) -> dd.DistilledData:
    settings: dict[str, Any] = {"iterations": 4, "steps": 2, "epochs": 1, "batch_size": 64}
    init = dd.FixedInit(scheme="he-normal")
    return dd.distill(  # the outer learning rate sets the distilled images apart from real ones
        digits8[0], BatchNorm(), initialization=init, test=digits8[1], outer_lr=0.3, **settings
    )


def normalised_by(module: nn.Module) -> torch.Tensor:
    return module.state_dict()["body.1.running_mean"]


def test_a_claim_states_the_statistics_that_training_gives(
    made: dd.DistilledData, digits8: Digits
) -> None:
    assert made.claim
    assert made.claim.statistics == "distilled images"
    assert str(made.claim).endswith(", running statistics of distilled images")
    trained = made.train()
    assert accuracy(trained, digits8[1], 1) == accuracy(trained, digits8[1], 90) == made.claim.mean
    assert dd.verify(made, digits8[1]).found.mean == made.claim.mean


def test_statistics_of_real_data_are_used_and_stated(
    made: dd.DistilledData, digits8: Digits
) -> None:
    train, test = digits8
    found = dd.evaluate(made, test, statistics=train)
    trained = made.train(statistics=train)
    assert accuracy(trained, test, 7) == found.mean
    assert not torch.allclose(normalised_by(trained), normalised_by(made.train()), atol=1e-2)
    claiming = made.with_claim(found.claim())
    assert claiming.claim
    assert claiming.claim.statistics == "digits train"
    assert dd.verify(claiming, test, statistics=train).found == found
    with pytest.raises(DataError, match=r"running statistics of digits train\.\nPass these data"):
        dd.verify(claiming, test)
    with pytest.raises(DataError, match="whose inputs have the shape"):
        made.train(statistics=(torch.zeros(4, 1, 7, 7), torch.zeros(4).long()))


def test_claims_of_earlier_versions_are_verified_by_the_batch(
    made: dd.DistilledData, digits8: Digits
) -> None:
    test = digits8[1]
    old = dd.evaluate(made, test, statistics="batch")
    inputs, labels = test.batch(slice(None), torch.device("cpu"), torch.float32)
    module = made.train()
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
            layer.train()
    assert old.mean == float((module(inputs).argmax(1) == labels).double().mean())
    claim = old.claim()
    assert claim.statistics is None
    assert "statistics" not in claim.model_dump()  # as earlier versions wrote it
    assert Claim.model_validate(claim.model_dump()) == claim
    assert dd.verify(made.with_claim(claim), test).found.values == old.values


def test_every_network_has_statistics_of_its_own(made: dd.DistilledData, digits8: Digits) -> None:
    initialization = made.header.initialization.model_copy(update={"name": "random", "seed": None})
    random = replace(made, header=made.header.model_copy(update={"initialization": initialization}))
    together = dd.evaluate(random, digits8[1], networks=3)
    few = dd.evaluate(random, digits8[1], networks=2)
    assert together.values[:2] == few.values
    assert together.losses[:2] == pytest.approx(few.losses, rel=1e-5)
    assert few.statistics == "distilled images"


def test_networks_without_running_statistics_state_none(digits8: Digits) -> None:
    train, test = digits8
    made = dd.distill(train, dd.models.Linear(1, 8, 10), iterations=1, test=test, test_networks=1)
    assert made.claim
    assert made.claim.statistics is None
    found = dd.evaluate(made, test, networks=1, statistics=train)
    assert found.statistics is None
    assert found == dd.evaluate(made, test, networks=1)
