"""Image folders, with a split or without one."""

import os
import shutil
from pathlib import Path

import pytest
import torch
from PIL import Image

from datadistill.data import (
    IMAGENET,
    ImageFiles,
    LabelledData,
    Normalization,
    ResizedCropFlip,
    load,
)
from datadistill.errors import DataError

from ..makers import make_image, make_image_folder, pixels


def paths(data: LabelledData) -> list[str]:
    assert isinstance(data.inputs, ImageFiles)
    return [Path(path).parent.name + "/" + Path(path).name for path in data.inputs.paths]


def test_folders_are_classes(tmp_path: Path) -> None:
    train, test = load(make_image_folder(tmp_path / "pets", square=True), workers=0)
    assert train.name == test.name == "pets"
    assert train.class_names == ("cat", "dog")
    assert train.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert paths(test) == ["cat/0.png", "cat/1.png", "dog/0.png", "dog/1.png"]
    assert train.normalization == test.normalization == Normalization.measured(train.inputs)


def test_images_keep_their_own_size_and_channels(tmp_path: Path) -> None:
    """Until 1.0 they were 3×224×224, and normalised with the statistics of ImageNet."""
    for number in range(8):
        folder = tmp_path / ("test" if number < 4 else "train") / "ab"[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels(9, 9, seed=number)).save(folder / f"{number}.png")
    train, test = load(tmp_path, workers=0)
    assert train.input_shape == test.input_shape == (1, 9, 9)
    assert torch.equal(torch.tensor(pixels(9, 9, seed=4)), train.inputs[0][0])
    make_image(tmp_path / "train" / "a" / "colour.png", (9, 9))
    assert load(tmp_path, workers=0)[0].input_shape == (3, 9, 9), "grey among colour is colour"
    assert load(tmp_path, normalization="imagenet", workers=0)[0].normalization == IMAGENET


@pytest.mark.parametrize(("size", "what"), [((9, 9), "sizes 8×8 and 9×9"), ((8, 9), "8×9")])
def test_images_without_one_square_size_need_a_size(
    size: tuple[int, int], what: str, tmp_path: Path
) -> None:
    folder = tmp_path / "pets"
    for split in ("train", "test"):
        for label in ("cat", "dog"):
            make_image(folder / split / label / "1.png", (8, 8))
    make_image(folder / "test" / "dog" / "2.png", size)
    with pytest.raises(DataError, match=what) as refused:
        load(folder)
    assert "--size 32" in refused.value.remedy
    assert load(folder, size=6, workers=0)[1].input_shape == (3, 6, 6)


@pytest.mark.parametrize("name", ["val", "valid", "validation"])
def test_validation_folders_are_for_testing(name: str, tmp_path: Path) -> None:
    folder = make_image_folder(tmp_path, square=True)
    (folder / "test").rename(folder / name)
    train, test = load(folder, workers=0)
    assert (len(train), len(test), test.split) == (6, 4, "test")


def test_size_channels_and_augmentation_can_be_chosen(tmp_path: Path) -> None:
    folder = make_image_folder(tmp_path)
    train, test = load(str(folder), size=30, channels=1, augment=True, workers=0)
    assert train.input_shape == (1, 30, 30)
    assert isinstance(train.augmentation, ResizedCropFlip)
    assert test.augmentation is None
    assert train.normalization is not None
    assert len(train.normalization.mean) == 1
    assert load(folder, size=30, workers=0)[0].augmentation is None


def test_other_files_are_passed_over(tmp_path: Path) -> None:
    folder = make_image_folder(tmp_path)
    (folder / "train" / "cat" / "notes.txt").write_text("not an image")
    (folder / "train" / "cat" / ".hidden.png").write_text("not an image")
    (folder / "train" / "readme.png").write_text("not a class")
    (folder / "train" / ".git").mkdir()
    make_image(folder / "train" / "cat" / "deeper" / "9.JPG")
    train, _ = load(folder, size=16, workers=0)
    assert paths(train)[:4] == ["cat/0.png", "cat/1.png", "cat/2.png", "deeper/9.JPG"]


class TestWithoutASplit:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return make_image_folder(tmp_path / "pets", train=10, square=True) / "train"

    def test_a_fifth_of_every_class_is_for_the_test(self, folder: Path) -> None:
        train, test = load(folder, workers=0)
        assert (train.split, test.split) == ("train", "test")
        assert train.labels.bincount().tolist() == [8, 8]
        assert test.labels.bincount().tolist() == [2, 2]
        assert sorted(paths(train) + paths(test)) == [
            f"{label}/{i}.png" for label in ("cat", "dog") for i in range(10)
        ]

    def test_the_seed_decides_the_split(self, folder: Path) -> None:
        splits = [sorted(paths(load(folder, seed=seed, workers=0)[1])) for seed in (0, 0, 1, 2)]
        assert splits[0] == splits[1]
        assert len({tuple(split) for split in splits}) > 1

    def test_too_few_images_are_refused(self, folder: Path) -> None:
        for i in range(2, 10):
            (folder / "dog" / f"{i}.png").unlink()
        with pytest.raises(DataError, match="dog has 2 images, too few"):
            load(folder)


@pytest.mark.parametrize(
    ("remove", "what"),
    [
        ("test/dog", "test/dog is missing"),
        ("train/cat", "train/cat is missing"),
        ("test", "cannot be read"),
        ("train", "cannot be read"),
    ],
)
def test_both_splits_need_every_class(remove: str, what: str, tmp_path: Path) -> None:
    folder = make_image_folder(tmp_path)
    shutil.rmtree(folder / remove)
    with pytest.raises(DataError, match=what):
        load(folder)


def test_an_empty_class_is_named(tmp_path: Path) -> None:
    folder = make_image_folder(tmp_path)
    (folder / "train" / "eel").mkdir()
    with pytest.raises(DataError, match="train/eel contains no images"):
        load(folder)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no class folders"):
        load(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_no_image(tmp_path: Path) -> None:
    folder = make_image_folder(tmp_path, square=True)
    os.mkfifo(folder / "train" / "cat" / "pipe.png")
    for size in (None, 8):
        with pytest.raises(DataError, match=r"pipe\.png"):
            load(folder, size=size)


def test_more_images_than_the_cache_holds_can_be_read_again_and_again(tmp_path: Path) -> None:
    train, _ = load(make_image_folder(tmp_path), size=16, workers=0, cache_bytes=3000)
    device, dtype = torch.device("cpu"), torch.float32
    first, second = (train.batch(slice(6), device, dtype)[0] for _ in range(2))
    assert torch.equal(first, second)


def test_workers_read_the_same_images(tmp_path: Path) -> None:
    folder = make_image_folder(tmp_path)
    device, dtype = torch.device("cpu"), torch.float32
    alone, together = (
        load(folder, size=16, workers=workers, augment=True)[0] for workers in (0, 2)
    )
    assert torch.equal(
        alone.batch(slice(6), device, dtype)[0], together.batch(slice(6), device, dtype)[0]
    )
    views = [
        data.batch(slice(6), device, dtype, torch.Generator().manual_seed(3))[0]
        for data in (alone, together)
    ]
    assert torch.equal(*views)
