"""The real files, where $DATADISTILL_DATA has them."""

import functools
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import torch

from datadistill.core.random import stream
from datadistill.data import DATA_SETS, ImageFiles, LabelledData, decoder_of, load

COUNTS = {
    "mnist": (
        [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
        [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009],
    ),
    "fashion-mnist": ([6000] * 10, [1000] * 10),
    "usps": (
        [1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644],
        [359, 264, 198, 166, 200, 160, 170, 147, 166, 177],
    ),
    "svhn": (
        [4948, 13861, 10585, 8497, 7458, 6882, 5727, 5595, 5045, 4659],
        [1744, 5099, 4149, 2882, 2523, 2384, 1977, 2019, 1660, 1595],
    ),
    "svhn-gray": (
        [1368, 4082, 3355, 2322, 2030, 1880, 1586, 1620, 1319, 1291],
        [366, 1017, 794, 560, 493, 504, 391, 399, 341, 304],
    ),
    "cifar10": ([5000] * 10, [1000] * 10),
}
CPU = torch.device("cpu")


@functools.cache
def real(name: str, data_dir: Path) -> tuple[LabelledData, LabelledData]:
    if missing := DATA_SETS[name].missing(data_dir):
        pytest.skip(f"needs the real {name}: put {missing[0].name} … into {missing[0].parent}")
    return load(name, data_dir)


@pytest.mark.parametrize("name", COUNTS)
def test_every_class_has_the_known_number_of_examples(name: str, data_dir: Path) -> None:
    for data, counts in zip(real(name, data_dir), COUNTS[name], strict=True):
        assert data.labels.bincount().tolist() == counts
        assert isinstance(data.inputs, torch.Tensor)
        assert data.inputs.dtype == torch.uint8


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist", "svhn", "svhn-gray", "cifar10"])
def test_normalised_training_images_have_mean_0_and_deviation_1(name: str, data_dir: Path) -> None:
    train, _ = real(name, data_dir)
    indices = torch.randperm(len(train), generator=stream(0, "sample"))[:5000]
    inputs, _ = train.batch(indices, CPU, torch.float32)
    assert inputs.mean().item() == pytest.approx(0, abs=0.03)
    assert inputs.std().item() == pytest.approx(1, abs=0.03)


def test_usps_has_nearly_the_mean_that_the_paper_normalises_with(data_dir: Path) -> None:
    train, _ = real("usps", data_dir)
    assert isinstance(train.inputs, torch.Tensor)
    pixels = train.inputs.float() / 255
    assert pixels.mean().item() == pytest.approx(0.1597, abs=0.002)
    assert pixels.std().item() == pytest.approx(0.3149, abs=0.0005)  # not .2573: darker ink


def test_svhn_gray_has_its_known_size_and_is_grey(data_dir: Path) -> None:
    train, test = real("svhn-gray", data_dir)
    assert (len(train), len(test)) == (20_853, 5_169)
    assert isinstance(train.inputs, torch.Tensor)
    assert torch.equal(train.inputs[:, 0], train.inputs[:, 2])
    theirs = scipy.io.loadmat(DATA_SETS["svhn-gray"].where(data_dir) / "test_32x32.mat")
    assert isinstance(test.inputs, torch.Tensor)
    assert np.array_equal(test.inputs.permute(2, 3, 1, 0).numpy(), theirs["X"])
    assert np.array_equal(test.labels.numpy(), theirs["y"].flatten() % 10)


def test_adult_r8_and_spoken_digits_have_their_known_sizes(data_dir: Path) -> None:
    adult, r8, spoken = (real(name, data_dir) for name in ("adult", "r8", "spoken-digits"))
    assert [data.labels.bincount().tolist() for data in adult] == [[24720, 7841], [12435, 3846]]
    assert adult[0].input_shape == (108,)
    assert [len(data) for data in r8] == [5485, 2189]
    assert r8[0].labels.bincount().tolist() == [1596, 253, 2840, 41, 190, 206, 108, 251]
    assert [data.labels.bincount().tolist() for data in spoken] == [[250] * 10, [50] * 10]
    inputs, _ = spoken[0].tensors()
    assert inputs.mean().item() == pytest.approx(0, abs=0.01)
    assert inputs.std().item() == pytest.approx(1, abs=0.01)


def test_rows_and_texts_are_decoded_as_their_files_have_them(data_dir: Path) -> None:
    for name, wanted in {
        "adult": ("39", "State-gov", "77516", "Bachelors", "13", "Never-married"),
        "r8": "champion products ch approves stock split",
    }.items():
        train, decoder = real(name, data_dir)[0], decoder_of(name, data_dir)
        assert decoder is not None
        assert isinstance(train.inputs, torch.Tensor)
        (first,) = decoder.rows(train.inputs[:1])
        assert (first if name == "adult" else first[0])[: len(wanted)] == wanted


def test_adaptation_pairs_have_one_shape(data_dir: Path) -> None:
    real("mnist", data_dir)
    real("svhn-gray", data_dir)
    mnist, _ = load("mnist", data_dir, channels=3)
    svhn, _ = load("svhn-gray", data_dir, size=28)
    assert mnist.input_shape == svhn.input_shape == (3, 28, 28)
    assert real("usps", data_dir)[0].input_shape == (1, 28, 28)


@pytest.mark.parametrize(("name", "each"), [("cub200", (12, 6)), ("caltech20", (50, 25))])
def test_image_files_have_the_known_number_in_every_class(
    name: str, each: tuple[int, int], data_dir: Path
) -> None:
    for data, count in zip(real(name, data_dir), each, strict=True):
        if name == "cub200" and len(data) > 5000:
            pytest.skip("the whole of CUB-200-2011 is there, not the subset")
        assert data.labels.bincount().tolist() == [count] * DATA_SETS[name].classes


@pytest.mark.parametrize("name", ["cub200", "caltech20"])
def test_image_files_decode_alike_with_and_without_workers(name: str, data_dir: Path) -> None:
    real(name, data_dir)
    indices = torch.arange(0, 1000, 50)
    alone, together = (load(name, data_dir, workers=workers)[0] for workers in (0, 2))
    plain, _ = alone.batch(indices, CPU, torch.float32)
    assert plain.shape == (20, 3, 224, 224)
    assert torch.equal(plain, together.batch(indices, CPU, torch.float32)[0])
    views, again = (
        data.batch(indices, CPU, torch.float32, stream(0, "views"))[0] for data in (alone, together)
    )
    assert torch.equal(views, again)
    assert not torch.equal(views, plain)


def test_training_on_cub_needs_no_more_memory_than_its_paths(data_dir: Path) -> None:
    train, _ = real("cub200", data_dir)
    assert isinstance(train.inputs, ImageFiles)
    kept, held_out = train.hold_out(0.1, seed=0)
    assert isinstance(kept.inputs, ImageFiles)
    assert len(kept) + len(held_out) == len(train)
