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
    assert f"The claim holds within {100 * result.tolerance:.2f} points (" in str(result)


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


SPREAD = (0.78, 0.82) * 8  # a deviation of 0.0207, and a bound of 2.602 · 0.0207 / 4 = 0.01344


@pytest.mark.parametrize(
    ("claimed", "values", "holds"),
    [
        # A point at most, however much the networks differ.
        (claim(0.809, 0.02, 16), SPREAD, True),
        (claim(0.811, 0.02, 16), SPREAD, False),
        (claim(0.6, 0.02, 16), SPREAD, True),  # better than claimed
        # 2.602 · 0.00516 / 4 = 0.00336 of 16 networks with a smaller deviation.
        (claim(0.8033, 0.005, 16), (0.795, 0.805) * 8, True),
        (claim(0.8035, 0.005, 16), (0.795, 0.805) * 8, False),
        # 3 of 1000 examples for one network, and for networks without a deviation.
        (claim(0.8, 0.0, 1), (0.7971,), True),
        (claim(0.8, 0.0, 1), (0.7969,), False),
        (claim(0.8, 0.0, 4), (0.7969,) * 4, False),
        (claim(0.8, 0.0, 1), (float("nan"),), False),
        # The claimed deviation widens nothing, and has to be near the measured one.
        (claim(0.8, 0.08, 16), (0.761,) * 16, False),
        (claim(0.8, 0.3, 16), (0.8,) * 16, False),
        (claim(0.8, 0.0, 16), (0.7, 0.9) * 8, False),
    ],
)
def test_accuracies_may_fall_short_by_what_was_measured_or_a_few_examples(
    claimed: dd.Claim, values: tuple[float, ...], holds: bool
) -> None:
    assert Verification(claimed, found(*values), higher_is_better=True).holds == holds


def test_the_bound_and_its_confidence_are_printed() -> None:
    few = Verification(claim(0.8033, 0.005, 16), found(*(0.795, 0.805) * 8), higher_is_better=True)
    assert str(few).endswith(
        "The claim holds within 0.34 points (99 % confidence over 16 networks, "
        "2.60 × 0.52 points / √16, at most 1 point)."
    )
    one = Verification(claim(0.8, 0.0, 1), found(0.5), higher_is_better=True)
    assert str(one).endswith(
        "The claim does not hold within 0.30 points (rounding: 3 test examples)."
    )
    wide = Verification(claim(0.8, 0.3, 16), found(*(0.8,) * 16), higher_is_better=True)
    assert "claimed standard deviation, 30.00 points, is not the measured one, 0.00" in str(wide)


@pytest.mark.parametrize("networks", [2, 3, 5, 16, 200])
def test_no_false_claim_passes_by_the_deviation_that_it_states(networks: int) -> None:
    """Of networks half of which fail, the claim says that nearly all succeed."""
    values = [0.1, 0.9] * networks
    measured = found(*values[:networks])
    for std in (0.0, 0.1, 0.3, measured.std):
        boast = claim(measured.mean + 0.02, min(std, 0.3), networks)
        assert not Verification(boast, measured, higher_is_better=True).holds


def test_a_claim_over_absurdly_many_networks_is_refused_with_the_figure(
    tested: dd.DistilledData, digits: Digits
) -> None:
    assert tested.claim is not None
    absurd = tested.with_claim(tested.claim.model_copy(update={"networks": 10**9}))
    with pytest.raises(ArtefactError, match=r"1,000,000,000 network\(s\), 3 update\(s\) each"):
        verify(absurd, digits[1])
    with pytest.raises(ArtefactError, match="the most is 5 networks"):
        verify(tested, digits[1], most_networks=5)


def test_a_claim_of_another_metric_is_refused(tested: dd.DistilledData, digits: Digits) -> None:
    assert tested.claim is not None
    other = tested.with_claim(tested.claim.model_copy(update={"metric": "accuracy of a kind"}))
    with pytest.raises(ArtefactError, match="of the metric 'accuracy of a kind'"):
        verify(other, digits[1])


def test_networks_that_diverged_are_said(tested: dd.DistilledData, digits: Digits) -> None:
    steps = type(tested.steps)(tested.inputs * 1e30, tested.labels, tested.learning_rates * 1e9)
    wild = dataclasses.replace(tested, steps=steps)
    assert "(2 of 2 network(s) diverged)" in str(dd.evaluate(wild, digits[1], networks=2))


@pytest.mark.parametrize("share", [float("nan"), float("inf"), -1.0, 5.0, 0.0])
def test_a_share_that_nothing_can_be_held_out_by_is_refused(
    distilled: dd.DistilledData, digits: Digits, share: float
) -> None:
    configuration = {"validation": share, "seed": 0}
    header = distilled.header.model_copy(update={"configuration": configuration})
    with pytest.raises(ArtefactError, match="cannot be made again"):
        claimed_split(dataclasses.replace(distilled, header=header), *digits)


def test_errors_may_exceed_the_claim_by_a_thousandth() -> None:
    claimed = claim(2.0, 0.0, 1, "mean squared error")
    assert Verification(claimed, found(2.0019), higher_is_better=False).holds
    assert not Verification(claimed, found(2.0021), higher_is_better=False).holds
    assert Verification(claimed, found(1.0), higher_is_better=False).holds
