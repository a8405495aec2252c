import dataclasses

import pytest
import torch

import datadistill as dd
from datadistill.errors import ArtefactError, DataError
from datadistill.evaluation import Evaluation, Verification, claimed_split, verify

Digits = tuple[dd.LabelledData, dd.LabelledData]


@pytest.fixture(scope="module")
def distilled(digits: Digits) -> dd.DistilledData:
    return dd.distill(digits[0], dd.models.MLP(hidden=8), iterations=3, batch_size=64)


@pytest.fixture(scope="module")
def tested(distilled: dd.DistilledData, digits: Digits) -> dd.DistilledData:
    return distilled.with_claim(dd.evaluate(distilled, digits[1], networks=12, seed=3).claim())


def claim(mean: float, std: float, networks: int, metric: str = "accuracy") -> dd.Claim:
    return dd.Claim(
        metric=metric,
        mean=mean,
        std=std,
        networks=networks,
        data="digits",
        split="test",
        examples=1000,
        seed=0,
    )


def found(*values: float) -> Evaluation:
    return Evaluation(values, values, "accuracy", "digits", "test", 1000, 0)


def test_a_claim_that_was_measured_is_reached(tested: dd.DistilledData, digits: Digits) -> None:
    result = verify(tested, claimed_split(tested, *digits))
    assert result.holds
    assert result.found.mean == tested.claim.mean if tested.claim else False
    assert len(result.found.values) == 12
    assert str(result).endswith(f"The claim holds within {100 * result.tolerance:.2f} points.")


def test_a_claim_that_is_too_high_is_not_reached(tested: dd.DistilledData, digits: Digits) -> None:
    assert tested.claim is not None
    boast = tested.claim.model_copy(update={"mean": tested.claim.mean + 0.2})
    result = verify(tested.with_claim(boast), digits[1])
    assert not result.holds
    assert "The claim does not hold" in str(result)


def test_distilled_data_that_were_exchanged_do_not_reach_the_claim(
    tested: dd.DistilledData, digits: Digits
) -> None:
    claimed = tested.with_claim(claim(0.9, 0.01, 12).model_copy(update={"examples": 360}))
    assert not verify(claimed, digits[1]).holds


def test_a_claim_on_validation_data_is_measured_on_those_very_examples(
    distilled: dd.DistilledData, digits: Digits
) -> None:
    assert distilled.claim is not None
    assert distilled.claim.split == "validation"
    data = claimed_split(distilled, *digits)
    assert torch.equal(data.labels, digits[0].hold_out(0.1, 0)[1].labels)
    result = verify(distilled, data)
    assert result.found.mean == distilled.claim.mean
    assert result.found.std == distilled.claim.std


def test_what_cannot_be_measured_again_is_said(
    distilled: dd.DistilledData, tested: dd.DistilledData, digits: Digits
) -> None:
    header = distilled.header
    silent = dataclasses.replace(distilled, header=header.model_copy(update={"claim": None}))
    with pytest.raises(ArtefactError, match="claims no figure"):
        verify(silent, digits[1])
    bare = dataclasses.replace(distilled, header=header.model_copy(update={"configuration": {}}))
    with pytest.raises(ArtefactError, match="validation split of digits, which cannot"):
        claimed_split(bare, *digits)
    with pytest.raises(DataError, match=r"360 examples of digits, but the train split .* has 1437"):
        verify(tested, digits[0])


@pytest.mark.parametrize(
    ("claimed", "values", "holds"),
    [
        # Two standard errors of 16 networks with a deviation of 0.08 are 0.04.
        (claim(0.8, 0.08, 16), (0.761,) * 16, True),
        (claim(0.8, 0.08, 16), (0.759,) * 16, False),
        (claim(0.8, 0.08, 16), (0.95,) * 16, True),  # better than claimed
        # 3 of 1000 examples for one network, and for networks without a deviation.
        (claim(0.8, 0.0, 1), (0.7971,), True),
        (claim(0.8, 0.0, 1), (0.7969,), False),
        (claim(0.8, 0.0, 4), (0.7969,) * 4, False),
        (claim(0.8, 0.0, 1), (float("nan"),), False),
    ],
)
def test_accuracies_may_fall_short_by_two_standard_errors_or_a_few_examples(
    claimed: dd.Claim, values: tuple[float, ...], holds: bool
) -> None:
    assert Verification(claimed, found(*values), higher_is_better=True).holds == holds


def test_errors_may_exceed_the_claim_by_a_thousandth() -> None:
    claimed = claim(2.0, 0.0, 1, "mean squared error")
    assert Verification(claimed, found(2.0019), higher_is_better=False).holds
    assert not Verification(claimed, found(2.0021), higher_is_better=False).holds
    assert Verification(claimed, found(1.0), higher_is_better=False).holds
