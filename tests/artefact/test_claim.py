"""Claims that no measurement can give are refused."""

import math
from typing import Any

import pytest
from pydantic import ValidationError

import datadistill as dd

SOUND: dict[str, Any] = {
    "metric": "accuracy",
    "mean": 0.5,
    "std": 0.0,
    "networks": 1,
    "data": "digits",
    "split": "test",
    "examples": 100,
    "seed": 0,
}
ERROR = {"metric": "mean squared error"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"std": 0.5}, "standard deviation is 0.5"),
        ({"std": 1e-9}, "standard deviation"),
        ({"std": -0.1, "networks": 5}, "standard deviation is -0.1"),
        ({"std": math.nan, "networks": 5}, "finite"),
        ({"std": math.inf, "networks": 5}, "finite"),
        ({"std": 0.71, "networks": 2}, "from 0 to 0.707107"),
        ({"std": 0.51, "networks": 200}, "from 0 to 0.501255"),
        ({"std": 0.04, "networks": 200, "mean": 0.999}, "from 0 to 0.0316"),
        ({"mean": 1.01}, "not between 0 and 1"),
        ({"mean": -0.01, "metric": "accuracy on modified labels"}, "not between 0 and 1"),
        ({"mean": -0.01, **ERROR}, "below 0"),
        ({"mean": 1.0, "std": 2.1, "networks": 4, **ERROR}, "from 0 to 2"),
        ({"networks": 0}, "greater than or equal to 1"),
        ({"networks": 2**70}, "less than"),
        ({"data": "x" * 5000}, "at most 4096"),
    ],
)
def test_a_figure_that_cannot_be_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        dd.Claim(**SOUND | change)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"networks": 2, "std": math.sqrt(0.5)},  # one network right, one wrong
        {"networks": 3, "mean": 1.0},
        {"networks": 3, "mean": 1 / 3, "std": math.sqrt(1 / 3)},
        {"mean": 7.0, **ERROR},
        {"mean": 1.0, "std": 2.0, "networks": 4, **ERROR},
        {"mean": -3.0, "std": 9.0, "networks": 4, "metric": "a metric of one's own"},
    ],
)
def test_a_figure_that_can_be_is_taken(change: dict[str, Any]) -> None:
    assert dd.Claim(**SOUND | change).networks
