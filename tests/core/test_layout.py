"""Which classes distilled images start as, whatever their number."""

import pytest
import torch

from datadistill.core.layout import mixtures, start_labels
from datadistill.core.objective import Classification, Objective, Regression
from datadistill.core.settings import Learned

TEN = torch.Size([10])


def start(objective: Objective, **settings: int) -> torch.Tensor:
    labels = torch.randn(4, 10) if isinstance(objective, Regression) else torch.arange(10)
    return start_labels(objective, TEN, labels, Learned(**settings), seed=0)


def test_classes_take_turns_over_all_steps() -> None:
    found = start(Classification(), steps=3, images_per_step=7)
    assert found.tolist() == (torch.arange(21) % 10).reshape(3, 7).tolist()


def test_as_many_images_as_classes_are_laid_out_as_by_class() -> None:
    by_step = start(Classification(), steps=2, images_per_step=20)
    assert torch.equal(by_step, start(Classification(), steps=2, images_per_class=2))


@pytest.mark.parametrize("steps", [1, 3])
def test_fewer_images_than_classes_start_as_mixtures_of_all_classes(steps: int) -> None:
    found = start(Classification(), steps=steps, images_per_step=3)
    assert found.shape == (steps, 3, 10)
    torch.testing.assert_close(found.sum(-1), torch.ones(steps, 3))
    assert ((found > 0).sum((0, 1)) == 1).all(), "each class is in one image"
    assert torch.equal(found.flatten(0, 1), mixtures(3 * steps, 10))


def test_a_regression_has_so_many_targets() -> None:
    assert start(Regression(), steps=2, images_per_step=7).shape == (2, 7, 10)
