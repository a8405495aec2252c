"""Inner minibatches: which images each update takes."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from datadistill.core.distilled import Steps, class_labels, zeros_like
from datadistill.core.inner_batches import InnerBatches
from datadistill.core.random import stream
from datadistill.errors import ConfigError


@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 5), st.integers(1, 12))
def test_every_update_takes_as_many_different_images_of_every_class(
    classes: int, images: int, more: int, updates: int
) -> None:
    total = classes * (images + more)
    drawn = InnerBatches(images, classes).draw(updates, total, stream(0, "test"))
    assert drawn.shape == (updates, images * classes)
    labels = class_labels(1, classes, images + more)[0]
    for one in drawn:
        assert len(set(one.tolist())) == len(one)
        assert torch.equal(torch.bincount(labels[one]), torch.full((classes,), images))


def test_all_images_are_taken_once_before_any_is_taken_again() -> None:
    drawn = InnerBatches(2, 3).draw(10, 3 * 10, stream(0, "test"))
    for begin in (0, 5):
        assert sorted(drawn[begin : begin + 5].flatten().tolist()) == list(range(30))
    assert not torch.equal(drawn[:5], drawn[5:])


def test_more_images_than_there_are_is_refused() -> None:
    with pytest.raises(ConfigError, match="there are 2 distilled images of each class"):
        InnerBatches(3, 5).draw(1, 10, stream(0, "test"))


def test_each_network_draws_by_its_own_number_and_seed() -> None:
    inputs = torch.arange(12.0).reshape(3, 4, 1)
    steps = Steps(inputs, torch.zeros(3, 4), torch.ones(2, 3), inner=InnerBatches(2))
    both = steps.for_networks(0, "network", [5, 6])
    alone = steps.for_networks(0, "network", [6])
    for one, other in zip(both, alone, strict=True):
        assert one.inputs.shape == (2, 2, 1)
        assert torch.equal(one.inputs[1], other.inputs[0])
    assert not torch.equal(both.drawn[:, :, 0], both.drawn[:, :, 1])  # pyright: ignore[reportOptionalSubscript]
    assert steps.for_networks(1, "network", [6]) != alone
    with pytest.raises(ValueError, match="each network draws"):
        next(iter(steps))


def test_gradients_are_summed_up_where_the_images_came_from() -> None:
    inputs = torch.arange(12.0).reshape(3, 4, 1)
    steps = Steps(inputs, torch.zeros(3, 4), torch.ones(2, 3), inner=InnerBatches(2))
    own = steps.for_networks(0, "network", [0])
    total = zeros_like(own)
    for position in own.schedule:
        total.add(position, own[position])
    # Six updates of two of twelve images: each image is taken once.
    assert torch.equal(total.inputs[:, 0], inputs)
