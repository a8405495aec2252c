"""Images that stand for the training data: random, k-means, average."""

import dataclasses
import functools
from typing import Any

import numpy as np
import pytest
import torch
from sklearn import cluster

import datadistill as dd
from datadistill.baselines import AverageReal, Baseline, KMeans, Layout, RandomReal, layout
from datadistill.baselines.k_means import random_state
from datadistill.core.distilled import Steps
from datadistill.core.random import stream
from datadistill.data import PadCropFlip
from datadistill.errors import DataError

Digits = tuple[dd.LabelledData, dd.LabelledData]
CPU = torch.device("cpu")


def of_class(steps: Steps, label: int) -> torch.Tensor:
    return steps.inputs[steps.labels == label].flatten(1)


def class_means(data: dd.LabelledData) -> torch.Tensor:
    """The means by numpy in float64, all at once."""
    inputs, labels = data.batch(slice(None), CPU, torch.float64)
    means = [inputs[labels == c].numpy().mean(0, dtype=np.float64) for c in range(10)]
    return torch.from_numpy(np.stack(means))


def rounding(reference: torch.Tensor) -> torch.Tensor:
    """Half the distance between neighbouring float32 numbers."""
    return torch.from_numpy(np.spacing(np.abs(reference.float().numpy()))).double() / 2


def test_average_images_are_the_class_means_to_float32_rounding(
    digits: Digits, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Several chunks a class, the last of which is not full.
    monkeypatch.setattr(layout, "CHUNK_BYTES", 50 * 784 * 8)
    steps = AverageReal().draw(digits[0], Layout(classes=10, steps=3, images_per_class=2))
    reference = class_means(digits[0])
    assert steps.inputs.shape == (3, 20, 1, 28, 28)
    assert steps.labels.tolist() == [[*range(10)] * 2] * 3
    for step in steps.inputs:
        for image, label in zip(step, steps.labels[0], strict=True):
            error = (image.double() - reference[label]).abs()
            assert (error <= 1.01 * rounding(reference[label])).all()


def test_average_images_of_mnist_are_the_class_means_to_float32_rounding(
    mnist: Digits,
) -> None:
    train = mnist[0].part(torch.arange(20_000), "train")
    steps = AverageReal().draw(train, Layout(10))
    reference = class_means(train)
    error = (steps.inputs[0].double() - reference).abs()
    assert (error <= 1.01 * rounding(reference)).all()


@pytest.mark.parametrize("seed", [0, 5])
def test_k_means_agrees_with_scikit_learn_on_the_same_seed_and_data(
    digits: Digits, seed: int
) -> None:
    steps = KMeans().draw(digits[0], Layout(10, steps=2, images_per_class=2), seed)
    inputs, labels = digits[0].batch(slice(None), CPU, torch.float32)
    for label in range(10):
        images = inputs[labels == label].flatten(1).numpy()
        kind: Any = cluster.KMeans
        state = random_state(functools.partial(stream, seed), label)
        expected = kind(4, n_init=1, random_state=state).fit(images)
        found = of_class(steps, label).numpy()
        np.testing.assert_allclose(found, expected.cluster_centers_, rtol=1e-5, atol=1e-5)


def test_centroids_are_the_means_of_the_images_nearest_to_them(digits: Digits) -> None:
    steps = KMeans().draw(digits[0], Layout(10, steps=3))
    inputs, labels = digits[0].batch(slice(None), CPU, torch.float32)
    for label in (0, 7):
        images, centroids = inputs[labels == label].flatten(1), of_class(steps, label)
        nearest = torch.cdist(images, centroids).argmin(1)
        means = torch.stack([images[nearest == k].mean(0) for k in range(3)])
        # Up to the tolerance at which scikit-learn stops.
        assert float((means - centroids).norm() / centroids.norm()) < 0.02


def test_k_means_with_one_centroid_is_the_average_image(digits: Digits) -> None:
    one = KMeans().draw(digits[0], Layout(10))
    mean = AverageReal().draw(digits[0], Layout(10))
    assert torch.allclose(one.inputs, mean.inputs, atol=1e-5)


def test_runs_of_k_means_differ_by_seed_and_repeat_by_seed(digits: Digits) -> None:
    def run(seed: int) -> torch.Tensor:
        return KMeans().draw(digits[0], Layout(10, steps=2), seed).inputs

    assert torch.equal(run(1), run(1))
    assert not torch.equal(run(1), run(2))


def test_k_means_of_equal_images_repeats_them_without_a_warning() -> None:
    data = dd.LabelledData(torch.ones(40, 1, 28, 28), torch.arange(40) % 10)
    steps = KMeans().draw(data, Layout(10, steps=3))
    assert torch.equal(steps.inputs, torch.ones(3, 10, 1, 28, 28))


@pytest.mark.parametrize("baseline", [RandomReal(), KMeans(), AverageReal()])
def test_every_step_has_as_many_images_of_every_class_as_distilled_data(
    digits: Digits, baseline: Baseline
) -> None:
    dtype = torch.float64
    steps = baseline.draw(digits[0], Layout(10, steps=2, images_per_class=3, dtype=dtype))
    assert steps.inputs.shape == (2, 30, 1, 28, 28)
    assert steps.labels.tolist() == [[*range(10)] * 3] * 2
    assert steps.learning_rates.shape == (1, 2)
    assert steps.inputs.dtype == steps.learning_rates.dtype == dtype


@pytest.mark.parametrize("baseline", [RandomReal(), KMeans()])
def test_too_few_examples_of_a_class_are_refused(digits: Digits, baseline: Baseline) -> None:
    with pytest.raises(DataError, match="examples; 1000 are needed") as caught:
        baseline.draw(digits[0], Layout(10, steps=1000))
    assert len(str(caught.value).splitlines()) == 2


def test_random_real_images_are_real_of_every_class_and_drawn_by_seed(digits: Digits) -> None:
    train = digits[0]
    steps = RandomReal().draw(train, Layout(10, steps=3, images_per_class=2), seed=1)
    real, labels = train.batch(slice(None), CPU, torch.float32)
    found: set[int] = set()
    for image, label in zip(steps.inputs.flatten(0, 1), steps.labels.flatten(), strict=True):
        matches = (real == image).flatten(1).all(1).nonzero().flatten()
        assert labels[matches[0]] == label
        found.add(int(matches[0]))
    assert len(found) == 60, "without replacement"
    other = RandomReal().draw(train, Layout(10, steps=3, images_per_class=2), seed=2)
    assert not torch.equal(steps.inputs, other.inputs)


@pytest.mark.parametrize("baseline", [RandomReal(), KMeans()])
def test_augmented_data_give_views_that_depend_on_the_seed_alone(
    digits: Digits, baseline: Baseline
) -> None:
    def images(data: dd.LabelledData) -> torch.Tensor:
        return baseline.draw(data, Layout(10, steps=2), seed=4).inputs

    augmented = dataclasses.replace(digits[0], augmentation=PadCropFlip(4))
    assert torch.equal(images(augmented), images(augmented))
    assert not torch.equal(images(augmented), images(digits[0]))
