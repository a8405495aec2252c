"""PASCAL-VOC 2007 in its own layout, made up."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from datadistill.data import ImageFiles, load
from datadistill.data.sets.voc2007 import CLASSES
from datadistill.errors import DataError

from ..makers import make_voc2007, voc_annotation, voc_object

ROOT = Path("voc2007") / "VOCdevkit" / "VOC2007"


@pytest.fixture
def made_up(tmp_path: Path) -> Path:
    make_voc2007(tmp_path / "voc2007")
    return tmp_path


def names(labels: torch.Tensor) -> list[str]:
    return [CLASSES[label] for label in labels.tolist()]


def test_the_label_is_the_largest_object_that_is_not_difficult(made_up: Path) -> None:
    train, test = load("voc2007", made_up, workers=0)
    assert names(train.labels) == ["person", "cat", "train"]  # 000004 shows only a difficult one
    assert names(test.labels) == ["tvmonitor", "aeroplane"]


def test_all_classes_of_an_image_are_kept(made_up: Path) -> None:
    train, test = load("voc2007", made_up, workers=0)
    assert train.present is not None
    assert test.present is not None
    shown = [names(row.nonzero().flatten()) for row in (*train.present, *test.present)]
    assert shown == [["dog", "person"], ["cat"], ["train"], ["tvmonitor"], ["aeroplane", "bird"]]


def test_every_object_is_an_example_of_its_own(made_up: Path) -> None:
    train, test = load("voc2007-objects", made_up, workers=0, size=20)
    assert names(train.labels) == ["dog", "person", "car", "cat", "train", "train", "sofa"]
    assert names(test.labels) == ["tvmonitor", "aeroplane", "bird"]
    assert isinstance(test.inputs, ImageFiles)
    # Pixels 11 to 30 across and 3 to 22 down, both counted from 1.
    with Image.open(made_up / ROOT / "JPEGImages" / "000005.jpg") as image:
        expected = np.asarray(image)[2:22, 10:30].transpose(2, 0, 1)
    assert np.array_equal(test.inputs[0].numpy(), expected)


def test_objects_can_be_held_out_and_augmented(made_up: Path) -> None:
    train, _ = load("voc2007-objects", made_up, workers=0, size=20)
    part = train.part(torch.tensor([6, 0]), "part")
    generator = torch.Generator().manual_seed(0)
    inputs, labels = part.batch(slice(2), torch.device("cpu"), torch.float32, generator)
    assert inputs.shape == (2, 3, 20, 20)
    assert names(labels) == ["sofa", "dog"]


def annotate(made_up: Path, text: str) -> Path:
    path = made_up / ROOT / "Annotations" / "000005.xml"
    path.write_text(text)
    return path


BOMB = (
    "<?xml version='1.0'?><!DOCTYPE annotation [<!ENTITY a 'ha'>"
    + "".join(
        f"<!ENTITY {b} '{f'&{a};' * 10}'>" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    + "]><annotation>&i;</annotation>"
)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "not valid XML"),
        ("<annotation>", "not valid XML"),
        (BOMB, "document type or entities"),
        (BOMB.encode().decode().replace("'1.0'", "'1.0' encoding='utf-8'"), "document type"),
        ("<!DOCTYPE a SYSTEM 'file:///etc/passwd'><a/>", "document type"),
        ("<?xml version='1.0' encoding='nonsense'?><annotation/>", "not valid XML"),
        ("<annotation>" + " " * 2**20 + "</annotation>", "too large"),
        (voc_annotation("000005", voc_object("unicorn", (1, 1, 9, 9))), "without a valid class"),
        (voc_annotation("000005", voc_object("dog", (9, 9, 1, 1))), "box"),
        (voc_annotation("000005", "<object><name>dog</name></object>"), "box"),
        (voc_annotation("000005", voc_object("dog", (1, 1, 9, 9)).replace("9", "nan")), "box"),
    ],
)
def test_hostile_annotations_are_named(text: str, what: str, made_up: Path) -> None:
    path = annotate(made_up, text)
    with pytest.raises(DataError, match=what) as caught:
        load("voc2007", made_up)
    assert str(path) in caught.value.what


def test_entities_in_other_encodings_are_refused(made_up: Path) -> None:
    path = annotate(made_up, "")
    path.write_bytes(BOMB.replace("<?xml version='1.0'?>", "").encode("utf-16"))
    with pytest.raises(DataError, match="document type"):
        load("voc2007", made_up)


def test_a_split_without_countable_objects_is_refused(made_up: Path) -> None:
    (made_up / ROOT / "ImageSets" / "Main" / "trainval.txt").write_text("000004\n")
    with pytest.raises(DataError, match="train split of voc2007 is empty"):
        load("voc2007", made_up)


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", "000001.jpg"])
def test_lists_name_images_and_nothing_else(name: str, made_up: Path) -> None:
    path = made_up / ROOT / "ImageSets" / "Main" / "test.txt"
    path.write_text(f"000005\n{name}\n")
    with pytest.raises(DataError, match="contains the image name"):
        load("voc2007", made_up)


@pytest.mark.parametrize("file", ["JPEGImages/000005.jpg", "Annotations/000005.xml"])
def test_a_listed_file_that_is_missing_is_named(file: str, made_up: Path) -> None:
    (made_up / ROOT / file).unlink()
    with pytest.raises(DataError, match=file):
        load("voc2007", made_up)
