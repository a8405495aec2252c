"""Augmentation in memory, against the plain way to do it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from datadistill.core.random import stream
from datadistill.data import Affine, PadCropFlip
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


def moments(view: torch.Tensor) -> tuple[float, float, float, float, float, float]:
    """Mass, centre (x, y) in pixels from the middle, and second moments (xx, xy, yy) of light."""
    light = view.double()[0] / 255
    height, width = light.shape
    x = (torch.arange(width, dtype=torch.float64) - (width - 1) / 2)[None, :]
    y = (torch.arange(height, dtype=torch.float64) - (height - 1) / 2)[:, None]
    mass = float(light.sum())
    cx, cy = float((light * x).sum() / mass), float((light * y).sum() / mass)
    xx, xy, yy = (
        float((light * a * b).sum() / mass)
        for a, b in ((x - cx, x - cx), (x - cx, y - cy), (y - cy, y - cy))
    )
    return mass, cx, cy, xx, xy, yy


NOTHING = Affine(shift=0, turn=0, resize=0, slant=0)
BLOB = torch.exp(  # a smooth upright stroke, 4 times as high as wide, far from the edges
    -((torch.arange(41.0)[:, None] - 20) ** 2) / 32 - (torch.arange(35.0)[None, :] - 17) ** 2 / 2
)
BLOBS = (BLOB * 255).round().to(torch.uint8).expand(400, 1, -1, -1)


def views(augmentation: Affine) -> list[tuple[float, float, float, float, float, float]]:
    return [moments(view) for view in augmentation(BLOBS, torch.arange(400), stream(0, "views"))]


def test_an_affine_view_of_no_amount_is_the_image() -> None:
    images = torch.randint(0, 256, (5, 3, 8, 13), dtype=torch.uint8, generator=stream(0, "images"))
    assert torch.equal(NOTHING(images, torch.tensor([3, 0]), stream(0, "views")), images[[3, 0]])
    floats = images.double() / 255
    same = NOTHING(floats, torch.arange(5), stream(0, "views"))
    assert same.dtype == torch.float64
    torch.testing.assert_close(same, floats, rtol=0, atol=1e-6)


def test_a_shift_moves_the_centre_by_at_most_its_share_of_the_side() -> None:
    found = views(replace(NOTHING, shift=0.1))
    for axis, side in ((1, 35), (2, 41)):
        places = np.array([f[axis] for f in found])
        assert np.abs(places).max() < 0.1 * side + 0.1
        assert places.min() < -0.09 * side
        assert places.max() > 0.09 * side
        assert abs(places.mean()) < 0.02 * side
    assert abs(np.corrcoef([f[1] for f in found], [f[2] for f in found])[0, 1]) < 0.15


def test_a_turn_turns_the_stroke_and_keeps_its_shape_also_of_images_that_are_not_square() -> None:
    found = views(replace(NOTHING, turn=30))
    degrees = np.array([np.degrees(np.arctan2(2 * xy, yy - xx)) / 2 for *_, xx, xy, yy in found])
    assert 29 < np.abs(degrees).max() < 31
    assert degrees.min() < -28
    assert degrees.max() > 28
    for mass, cx, cy, xx, _, yy in found:
        assert abs(mass / moments(BLOBS[0])[0] - 1) < 0.02
        assert abs(cx) + abs(cy) < 0.1
        assert abs((xx + yy) / sum(moments(BLOBS[0])[3::2]) - 1) < 0.04


def test_resizing_keeps_the_shape_and_grows_as_often_as_it_shrinks() -> None:
    found = views(replace(NOTHING, resize=0.25))
    size = moments(BLOBS[0])[5]
    factors = np.array([(f[5] / size) ** 0.5 for f in found])
    assert 1.2 < factors.max() < 1.27
    assert 0.79 < factors.min() < 0.84
    assert abs(np.log(factors).mean()) < 0.02
    assert all(abs(f[4]) < 0.05 for f in found)


def test_a_slant_moves_lines_sideways_in_proportion_to_their_height() -> None:
    found = views(replace(NOTHING, slant=0.3))
    slants = np.array([xy / yy for *_, xy, yy in found])
    assert 0.28 < np.abs(slants).max() < 0.32
    assert slants.min() < -0.25
    assert slants.max() > 0.25
    assert all(abs(f[5] / moments(BLOBS[0])[5] - 1) < 0.02 for f in found)


def test_what_comes_in_from_outside_is_the_edge() -> None:
    white = torch.full((50, 1, 8, 8), 200, dtype=torch.uint8)
    assert (Affine(shift=0.5)(white, torch.arange(50), stream(0, "views")) == 200).all()
