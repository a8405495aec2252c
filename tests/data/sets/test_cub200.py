"""CUB-200-2011 in its own layout, made up."""

from pathlib import Path

import pytest
import torch

from datadistill.data import ImageFiles, Normalization, load
from datadistill.errors import DataError

from ..makers import make_cub200

ROOT = Path("cub200") / "CUB_200_2011"


@pytest.fixture
def made_up(tmp_path: Path) -> Path:
    make_cub200(tmp_path / "cub200")
    return tmp_path


def test_lists_decide_class_and_split(made_up: Path) -> None:
    train, test = load("cub200", made_up, workers=0)
    assert train.labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert test.labels.tolist() == [0, 1, 2]
    assert train.class_names == ("001.Bird_0", "002.Bird_1", "003.Bird_2")
    assert isinstance(test.inputs, ImageFiles)
    assert [Path(path).name for path in test.inputs.paths][:2] == [
        "001.Bird_0_0.jpg",
        "002.Bird_1_0.jpg",
    ]
    assert train.normalization == Normalization((0.4785, 0.4993, 0.4022), (0.2321, 0.2277, 0.2665))


def change(made_up: Path, name: str, old: str, new: str) -> None:
    path = made_up / ROOT / name
    path.write_text(path.read_text().replace(old, new))


@pytest.mark.parametrize(
    ("name", "old", "new", "what"),
    [
        ("image_class_labels.txt", "4 2\n", "", "has no class"),
        ("image_class_labels.txt", "4 2\n", "4 9\n", "has no class"),
        ("train_test_split.txt", "4 0\n", "", "no split"),
        ("train_test_split.txt", "4 0\n", "4 2\n", "no split"),
        ("images.txt", "4 002.Bird_1", "4 /etc", "outside the folder"),
        ("images.txt", "4 002.Bird_1", "4 ../../etc", "outside the folder"),
        ("images.txt", "_1_0.jpg", "_1_77.jpg", "is missing"),
        ("images.txt", "_1_0.jpg", "n" * 5000, "is missing"),
        ("images.txt", "5 ", "4 ", "unique number"),
        ("classes.txt", "1 001.Bird_0", "1", "unique number"),
        ("classes.txt", "2 002.Bird_1\n", "", "has no class"),
    ],
)
def test_lists_that_disagree_are_refused(
    name: str, old: str, new: str, what: str, made_up: Path
) -> None:
    change(made_up, name, old, new)
    with pytest.raises(DataError, match=what):
        load("cub200", made_up)


def test_a_list_that_is_no_text_is_named(made_up: Path) -> None:
    (made_up / ROOT / "images.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match=r"images.txt is not UTF-8 text"):
        load("cub200", made_up)


def test_a_damaged_image_is_named_when_it_is_read(made_up: Path) -> None:
    train, _ = load("cub200", made_up, workers=0)
    assert isinstance(train.inputs, ImageFiles)
    Path(train.inputs.paths[3]).write_bytes(b"damaged")
    with pytest.raises(DataError, match=r"002\.Bird_1_2\.jpg cannot be read as an image") as caught:
        train.batch(slice(6), torch.device("cpu"), torch.float32)
    assert "Replace or remove" in caught.value.remedy
