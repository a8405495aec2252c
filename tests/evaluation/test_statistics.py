"""Which running statistics figures are measured with, and that claims say so."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim.swa_utils import update_bn

import datadistill as dd
from datadistill.artefact.header import Claim
from datadistill.baselines import Layout, RandomReal
from datadistill.baselines.adversarial import AdversarialSettings, adapt_few_shot
from datadistill.errors import DataError
from datadistill.evaluation import attack, victims_of
from datadistill.tables import Counts, TableSettings, baseline_table

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


def one_by_one(
    weights: Mapping[str, torch.Tensor], batches: torch.Tensor, test: dd.LabelledData
) -> float:
    """The accuracy at batch size 1, with statistics that plain PyTorch measures on batches."""
    module = BatchNorm()
    module.load_state_dict({n: w for n, w in weights.items() if "running" not in n}, strict=False)
    update_bn(batches, module)  # pyright: ignore[reportArgumentType]
    return accuracy(module, test, 1)


def all_of(data: dd.LabelledData) -> torch.Tensor:
    """All inputs as one batch."""
    return data.batch(slice(None), torch.device("cpu"), torch.float32)[0][None]


def test_a_pool_has_the_accuracies_of_networks_with_statistics_of_its_training_data(
    digits8: Digits, tmp_path: Path
) -> None:
    train, test = digits8
    given: dict[str, Any] = {"epochs": 2, "batch_size": 32, "lr": 0.01, "validation": 0.2}
    pool = dd.pretrain(train, BatchNorm(), tmp_path, networks=2, held_out=1, test=test, **given)
    rest, validation = train.hold_out(0.2, 0)
    for number in range(2):
        weights = pool.network("train", number)
        for data in (validation, test):
            found = pool.accuracies("train", test=data is test)[number]
            assert found == pytest.approx(one_by_one(weights, all_of(rest), data))


def test_networks_are_attacked_with_statistics_of_the_data_they_were_trained_on(
    digits8: Digits,
) -> None:
    train, test = digits8
    made = dd.distill(
        train,
        BatchNorm(),
        objective=dd.Poisoning(attacked=3, target=8),
        initialization=dd.FixedInit(scheme="he-normal"),
        iterations=2,
        batch_size=64,
        outer_lr=0.3,
    )
    victims = victims_of(made, test, statistics=train)
    found = attack(made.steps, victims)
    assert found.statistics == "digits train"
    before = {name: w[0] for name, w in victims.sample(range(1)).items()}
    trained = made.train(statistics=train).state_dict()
    for weights, figures in ((before, found.before), (trained, found.after)):
        right = sum(score.examples * score.mean for score in figures.by_class) / len(test)
        assert right == pytest.approx(one_by_one(weights, all_of(train), test))
    others = victims.others(test, 1)
    assert others.statistics is victims.statistics
    by_images = attack(made.steps, victims_of(made, test))
    assert by_images.statistics == "distilled images"
    assert by_images.after != found.after


def test_adapted_networks_have_statistics_of_the_few_images_of_the_target(
    digits8: Digits, tmp_path: Path
) -> None:
    source, test = digits8
    given: dict[str, Any] = {"epochs": 1, "batch_size": 32, "lr": 0.01}
    pool = dd.pretrain(source, BatchNorm(), tmp_path, networks=2, held_out=1, **given)
    target, tested = (
        replace(data, inputs=torch.as_tensor(data.inputs).flip(-1), name="mirrored")
        for data in (source, test)
    )
    made = dd.distill(
        target, BatchNorm(), initialization=dd.PoolInit(pool), steps=2, iterations=1, batch_size=64
    )
    few = Counts(
        sets=1,
        drawn=2,
        kept=1,
        picking_networks=1,
        choosing_sets=1,
        choosing_networks=1,
        examples=64,
        full_networks=1,
        full_epochs=1,
        few_shot_networks=1,
        few_shot_choosing=1,
        few_shot_updates=(2,),
    )
    table = baseline_table(
        made, target, tested, source=source, settings=TableSettings(counts=few, networks=1)
    )
    row = table["few-shot adversarial"]
    lr, confusion = (float(word) for word in re.findall(r"(?:lr|γ) ([\d.e-]+)", row.chosen))
    images = RandomReal().draw(target.hold_out(0.1, seed=0)[0], Layout.of(made.network(), 2, 10), 0)
    (adapted,) = adapt_few_shot(
        made.network().module(pool.network("held-out", 0)),
        source,
        images.inputs.flatten(0, 1),
        images.labels.flatten(),
        AdversarialSettings(confusion=confusion, lr=lr),
        after=(2,),
    )
    assert row.values[0][0] == pytest.approx(one_by_one(adapted, images.inputs, tested))
