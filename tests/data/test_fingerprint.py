"""The hash of real data: equal for the same data only."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from datadistill.data import ImageFiles, LabelledData, load
from datadistill.data.fingerprint import data_hash, legacy_data_hash, same_data
from datadistill.errors import DataError

from .makers import make_image, make_image_folder


def images(folder: Path) -> LabelledData:
    return replace(load(folder, size=8, normalization="imagenet", workers=0)[0], name="pets")


@pytest.fixture
def data(tmp_path: Path) -> LabelledData:
    return images(make_image_folder(tmp_path / "pets"))


def files(data: LabelledData) -> ImageFiles:
    assert isinstance(data.inputs, ImageFiles)
    return data.inputs


def test_data_sets_with_equal_file_names_and_other_images_differ(
    data: LabelledData, tmp_path: Path
) -> None:
    for seed, path in enumerate(files(data).paths):
        make_image(tmp_path / "others" / Path(path).relative_to(tmp_path / "pets"), seed=seed + 100)
    shutil.copytree(tmp_path / "pets" / "test", tmp_path / "others" / "test")
    others = images(tmp_path / "others")
    assert data_hash(others) != data_hash(data)
    assert legacy_data_hash(others) == legacy_data_hash(data)


def test_one_image_that_changes_in_place_is_noticed(data: LabelledData) -> None:
    before = data_hash(data)
    path = Path(files(data).paths[-1])
    content = bytearray(path.read_bytes())
    content[-20] ^= 1
    path.write_bytes(content)
    os.utime(path, (0, 0))
    assert data_hash(data) != before


def test_where_the_images_are_does_not_matter(data: LabelledData, tmp_path: Path) -> None:
    shutil.copytree(tmp_path / "pets", tmp_path / "elsewhere" / "pets")
    moved = images(tmp_path / "elsewhere" / "pets")
    assert data_hash(moved) == data_hash(data)


def test_how_images_are_cropped_matters(data: LabelledData) -> None:
    one = files(data)
    region = (0.0, 0.0, 5.0, 5.0)
    variants = [
        one,
        replace(one, margin=None),
        replace(one, regions=(region,) * len(one)),
        replace(one, size=9),
        one.part(torch.arange(len(one)).flip(0)),
    ]
    assert len({data_hash(replace(data, inputs=variant)) for variant in variants}) == 5


def test_a_missing_image_is_named(data: LabelledData) -> None:
    path = Path(files(data).paths[0])
    path.unlink()
    with pytest.raises(DataError, match=path.name):
        data_hash(data)


def test_recorded_hashes_of_both_kinds_are_accepted(data: LabelledData) -> None:
    for recorded in data_hash(data), legacy_data_hash(data):
        assert same_data(recorded, data)
        assert not same_data(recorded, replace(data, name="other"))
        assert not same_data(recorded, replace(data, labels=1 - data.labels))
    path = Path(files(data).paths[0])
    recorded = data_hash(data)
    make_image(path, seed=1000)
    os.utime(path, (0, 0))
    assert not same_data(recorded, data)


def test_hashes_of_earlier_versions_are_still_the_same(data: LabelledData) -> None:
    tensors = LabelledData(torch.arange(24, dtype=torch.uint8).reshape(2, 1, 3, 4), torch.arange(2))
    assert data_hash(tensors) == legacy_data_hash(tensors) == TENSORS
    assert same_data(TENSORS, tensors)
    assert legacy_data_hash(data) == IMAGES


# As computed before the content of image files was hashed.
TENSORS = "12a776c6992d9b2d5be27a9a0f2898e61ff152ebc3bf6dd834dfb52a49727f5e"
IMAGES = "bd708f58fa8ee5dfa179f07d00e526fe6b8c83355fb46cdb5cd912350e251686"
