import pytest
import torch

from datadistill.core.objective import (
    Classification,
    Objective,
    OwnObjective,
    Poisoning,
    Regression,
)
from datadistill.errors import DataError, ModelError

TEN = torch.Size([10])
ONE = torch.Size([1])


def test_cross_entropy_of_hard_and_soft_labels_agree() -> None:
    outputs = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([0, 1, 2, 3, 1, 1])
    hard = Classification().inner_loss(outputs, labels)
    soft = Classification().inner_loss(outputs, torch.eye(4)[labels])
    expected = -(outputs.log_softmax(1)[torch.arange(6), labels]).mean()
    torch.testing.assert_close(hard, expected)
    torch.testing.assert_close(soft, expected)


def test_a_single_output_is_a_choice_between_two_classes() -> None:
    outputs = torch.tensor([[2.0], [-1.0], [0.5]])
    labels = torch.tensor([1, 0, 0])
    two = torch.cat([torch.zeros(3, 1), outputs], 1)
    one_output = Classification().outer_loss(outputs, labels)
    torch.testing.assert_close(one_output, Classification().outer_loss(two, labels))
    assert Classification().score(outputs, labels).tolist() == [True, True, False]
    assert Classification().classes(ONE) == 2
    assert Classification().start_labels(ONE, labels, 1, 2, 0).tolist() == [[0, 1, 0, 1]]


def test_scores_are_per_network_and_example() -> None:
    outputs = torch.tensor([[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]]])
    scores = Classification().score(outputs, torch.tensor([1, 1]))
    assert scores.tolist() == [[True, False], [False, False]]
    targets = torch.tensor([[0.0, 0.0], [1.0, 2.0]])
    assert Regression().score(outputs, targets).tolist() == [[0.5, 2.0], [0.5, 2.0]]


@pytest.mark.parametrize(
    ("objective", "outputs", "labels", "message"),
    [
        (Classification(), TEN, torch.tensor([0, 10]), "0 to 10, but the network tells 10"),
        (Classification(), TEN, torch.tensor([-1, 3]), "-1 to 3"),
        (Classification(), TEN, torch.tensor([0.5]), "one integer label per example"),
        (Classification(), TEN, torch.tensor([[1], [2]]), "one integer label per example"),
        (Classification(), TEN, torch.arange(9), "no example of class 9"),
        (Classification(), ONE, torch.tensor([1, 1]), "no example of class 0"),
        (Regression(), ONE, torch.tensor([1, 2]), "floating-point"),
        (Regression(), ONE, torch.rand(4, 3), "1 number"),
        (Regression(), ONE, torch.tensor([1.0, float("nan")]), "NaN"),
    ],
)
def test_labels_that_cannot_be_learned_are_refused(
    objective: Objective, outputs: torch.Size, labels: torch.Tensor, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        objective.check(outputs, labels, complete=True)


def test_test_data_may_lack_a_class() -> None:
    Classification().check(TEN, torch.arange(9), complete=False)


@pytest.mark.parametrize("objective", [Classification(), Regression()])
def test_outputs_of_the_wrong_shape_are_refused(objective: Objective) -> None:
    with pytest.raises(ModelError, match=r"\(10, 7, 7\)"):
        objective.check(torch.Size([10, 7, 7]), torch.arange(10), complete=True)


def test_regression_targets_start_with_the_spread_of_the_real_ones() -> None:
    real = 5 + 3 * torch.randn(1000, 2, generator=torch.Generator().manual_seed(0))
    start = Regression().start_labels(torch.Size([2]), real, 50, 20, seed=1)
    assert start.shape == (50, 20, 2)
    assert float(start.mean()) == pytest.approx(5, abs=0.3)
    assert float(start.std()) == pytest.approx(3, rel=0.1)


class RootMeanSquare(Regression):
    """As a user would write it: nothing is said about parts of a minibatch."""

    def outer_loss(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return super().outer_loss(outputs, labels).sqrt()


class Smoothed(Classification):
    def inner_loss(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return super().inner_loss(outputs, labels) ** 2


class Halved(Regression):
    """Says that it is a mean, which it is."""

    is_mean = True

    def outer_loss(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return super().outer_loss(outputs, labels) / 2


class Renamed(Regression):
    """Has the losses of the class above it."""

    metric = "error"


def test_a_loss_is_a_mean_over_examples_only_where_its_class_says_so() -> None:
    assert [one.is_mean for one in (Classification, Regression, Poisoning)] == [True] * 3
    assert not OwnObjective.is_mean
    assert [one.is_mean for one in (RootMeanSquare, Smoothed)] == [False] * 2
    assert [one.is_mean for one in (Halved, Renamed)] == [True] * 2
    inner = [RootMeanSquare(), OwnObjective(None, "a:b"), Poisoning(), Halved(), Smoothed()]
    assert [one.inner_is_mean for one in inner] == [True, True, True, True, False]


def test_a_class_below_another_is_recorded_as_itself() -> None:
    assert RootMeanSquare().record() == {"name": f"{__name__}:RootMeanSquare"}
    again = Objective.from_record(RootMeanSquare().record())
    assert type(again) is RootMeanSquare
