"""K-NN classification against scikit-learn's."""

from typing import Any

import pytest
import torch
from sklearn.neighbors import KNeighborsClassifier

import datadistill as dd
from datadistill.baselines import (
    Baseline,
    KMeans,
    Layout,
    RandomReal,
    nearest_neighbours,
    neighbour_accuracy,
)
from datadistill.baselines.knn import CHOICES, Norm

Data = tuple[dd.LabelledData, dd.LabelledData]
CPU = torch.device("cpu")
POWERS = {"l1": 1, "l2": 2}


def of_scikit_learn(
    images: torch.Tensor, labels: torch.Tensor, inputs: torch.Tensor, norm: Norm, neighbours: int
) -> torch.Tensor:
    kind: Any = KNeighborsClassifier
    classifier = kind(neighbours, p=POWERS[norm], algorithm="brute")
    classifier.fit(images.flatten(1).double().numpy(), labels.numpy())
    return torch.from_numpy(classifier.predict(inputs.flatten(1).double().numpy()))


@pytest.mark.parametrize(("norm", "neighbours"), CHOICES)
@pytest.mark.parametrize("shape", [(2,), (3, 5, 5)])
def test_random_data_are_classified_as_by_scikit_learn(
    norm: Norm, neighbours: int, shape: tuple[int, ...]
) -> None:
    random = torch.Generator().manual_seed(3)
    images = torch.randn(60, *shape, generator=random)
    labels = torch.randint(0, 7, (60,), generator=random)
    inputs = torch.randn(500, *shape, generator=random)
    found = nearest_neighbours(images, labels, inputs, norm=norm, neighbours=neighbours)
    assert torch.equal(found, of_scikit_learn(images, labels, inputs, norm, neighbours))


@pytest.mark.parametrize(("norm", "neighbours"), CHOICES)
@pytest.mark.parametrize("baseline", [RandomReal(), KMeans()], ids=lambda one: one.name)
def test_mnist_is_classified_as_by_scikit_learn(
    mnist: Data, baseline: Baseline, norm: Norm, neighbours: int
) -> None:
    train, test = mnist[0].part(torch.arange(2000), "train"), mnist[1]
    steps = baseline.draw(train, Layout(classes=10, steps=10))
    test = test.part(torch.arange(1000), "test")
    inputs, labels = test.batch(slice(None), CPU, torch.float32)
    images, classes = steps.inputs.flatten(0, 1), steps.labels.flatten()
    expected = of_scikit_learn(images, classes, inputs, norm, neighbours)
    found = nearest_neighbours(images, classes, inputs, norm=norm, neighbours=neighbours)
    assert torch.equal(found, expected)
    accuracy = float((expected == labels).double().mean())
    assert neighbour_accuracy(steps, test, norm=norm, neighbours=neighbours) == accuracy


def test_of_equal_votes_the_lowest_class_wins_and_of_equal_distances_the_first_image() -> None:
    images = torch.tensor([[1.0], [2.0], [3.0], [-1.0]])
    labels = torch.tensor([2, 0, 1, 0])
    zero = torch.zeros(1, 1)
    for norm in ("l1", "l2"):
        # The nearest are 1 and -1, equally far: the first of them is of class 2.
        assert nearest_neighbours(images, labels, zero, norm=norm, neighbours=1).item() == 2
        # One vote for each of the classes 2, 0 and 1.
        three = nearest_neighbours(images[:3], labels[:3], zero, norm=norm, neighbours=3)
        assert three.item() == 0
        assert three == of_scikit_learn(images[:3], labels[:3], zero, norm, 3)
