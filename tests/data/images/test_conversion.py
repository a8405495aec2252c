"""Other sizes and channels of data in memory."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from datadistill.data import LabelledData, Normalization, Options, load
from datadistill.data.images.conversion import apply_options, resized, with_channels
from datadistill.errors import ConfigError, DataError

from ..makers import make_mnist, make_svhn, pixels


def test_mnist_as_rgb(tmp_path: Path) -> None:
    make_mnist(tmp_path / "mnist")
    grey, _ = load("mnist", tmp_path)
    for colour, plain in zip(
        load("mnist", tmp_path, channels=3), load("mnist", tmp_path), strict=True
    ):
        assert colour.input_shape == (3, 28, 28)
        assert colour.normalization == Normalization((0.1307,) * 3, (0.3081,) * 3)
        images, _ = colour.batch(slice(5), torch.device("cpu"), torch.float32)
        expected, _ = plain.batch(slice(5), torch.device("cpu"), torch.float32)
        torch.testing.assert_close(images, expected.expand(-1, 3, -1, -1))
    assert grey.input_shape == (1, 28, 28)


def test_svhn_at_the_size_of_mnist(tmp_path: Path) -> None:
    make_svhn(tmp_path / "svhn")
    train, test = load("svhn", tmp_path, size=28)
    assert train.input_shape == test.input_shape == (3, 28, 28)
    assert load("svhn", tmp_path, size=28, channels=1)[0].input_shape == (1, 28, 28)


def test_digits_in_another_size() -> None:
    train, test = load("digits", size=32, channels=3)
    assert train.input_shape == test.input_shape == (3, 32, 32)


@pytest.mark.parametrize("size", [12, 28, 50])
def test_resizing_agrees_with_pillow(size: int) -> None:
    smooth = torch.nn.functional.avg_pool2d(torch.from_numpy(pixels(4, 3, 40, 40)).float(), 9, 1)
    images = smooth.round().byte().numpy()  # Pillow cuts off what overshoots between its passes
    ours = resized(torch.from_numpy(images), size).int()
    for image, mine in zip(images, ours, strict=True):
        picture = Image.fromarray(image.transpose(1, 2, 0))
        theirs = np.asarray(picture.resize((size, size), Image.Resampling.BICUBIC), np.int32)
        assert (mine - torch.from_numpy(theirs.transpose(2, 0, 1))).abs().max() <= 1


def test_grey_agrees_with_pillow() -> None:
    images = pixels(4, 3, 9, 9)
    ours = with_channels(torch.from_numpy(images), 1).int()
    for image, mine in zip(images, ours, strict=True):
        theirs = np.asarray(Image.fromarray(image.transpose(1, 2, 0)).convert("L"), np.int32)
        assert (mine[0] - torch.from_numpy(theirs)).abs().max() <= 1


def test_grey_as_colour_costs_no_memory() -> None:
    images = torch.zeros(10, 1, 4, 4, dtype=torch.uint8)
    assert with_channels(images, 3).untyped_storage().data_ptr() == images.data_ptr()


def test_what_is_no_image_of_bytes_cannot_be_resized() -> None:
    data = LabelledData(torch.zeros(4, 7), torch.arange(4))
    with pytest.raises(DataError, match="not images of bytes"):
        apply_options(data, data, Options(size=28))


def test_floats_are_as_asked_only_if_they_are_so_already() -> None:
    data = LabelledData(
        torch.rand(4, 3, 9, 9), torch.arange(4), Normalization((0.5,) * 3, (2,) * 3)
    )
    for options in (Options(size=9), Options(channels=3), Options(size=9, channels=3)):
        train, test = apply_options(data, data, options)
        assert train.inputs is test.inputs is data.inputs
        assert train.normalization == data.normalization
    for options in (Options(size=8), Options(channels=1), Options(size=9, channels=1)):
        with pytest.raises(DataError, match=r"\(3, 9, 9\), are not images of bytes"):
            apply_options(data, data, options)


@pytest.mark.parametrize(
    "options",
    [{"size": 0}, {"size": 10**6}, {"channels": 2}, {"workers": -1}, {"cache_bytes": -1}],
)
def test_options_out_of_range_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        load("digits", **options)  # pyright: ignore[reportArgumentType]
