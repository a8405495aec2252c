"""Augmentation in memory, against the plain way to do it."""

import numpy as np
import pytest
import torch

from datadistill.core.random import stream
from datadistill.data import PadCropFlip
from datadistill.errors import DataError


@pytest.mark.parametrize("padding", [1, 4])
@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 8, 13)])
def test_every_view_is_a_crop_of_the_reflected_image(
    padding: int, shape: tuple[int, int, int]
) -> None:
    images = torch.randint(0, 256, (40, *shape), dtype=torch.uint8, generator=stream(0, "images"))
    views = PadCropFlip(padding)(images, torch.arange(40), stream(0, "views"))
    assert views.dtype == torch.uint8
    _, height, width = shape
    border = [(0, 0), (padding, padding), (padding, padding)]
    places: set[tuple[int, int, bool]] = set()
    for image, view in zip(images.numpy(), views.numpy(), strict=True):
        padded = np.pad(image, border, mode="reflect")
        found = [
            (top, left, flip)
            for top in range(2 * padding + 1)
            for left in range(2 * padding + 1)
            for flip in (False, True)
            if np.array_equal(
                padded[:, top : top + height, left : left + width][:, :, :: -1 if flip else 1], view
            )
        ]
        assert found
        places.add(found[0])
    assert len(places) > 8
    assert {flip for _, _, flip in places} == {False, True}


def test_all_places_are_equally_likely() -> None:
    images = torch.arange(64, dtype=torch.uint8).reshape(1, 1, 8, 8)
    views = PadCropFlip(1)(images, torch.zeros(9000, dtype=torch.int64), stream(0, "views"))
    counts = torch.unique(views.flatten(1), dim=0, return_counts=True)[1]
    assert len(counts) == 18  # 3 × 3 places, mirrored or not
    assert counts.min() > 400
    assert counts.max() < 600


def test_images_too_small_to_reflect_are_refused() -> None:
    with pytest.raises(DataError, match="too small"):
        PadCropFlip(4)(torch.zeros(1, 1, 4, 4), torch.arange(1), stream(0, "views"))
