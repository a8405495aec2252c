"""PASCAL-VOC 2007: photographs of everyday scenes with objects of 20 classes in them."""

import math
import re
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element

import torch

from ..errors import DataError
from .augmentation import ResizedCropFlip
from .labelled import LabelledData
from .listing import ImageSet, Listing
from .options import Options
from .safe_xml import read_xml
from .unpack import read_text

CLASSES = (
    "aeroplane",
    "bicycle",
    "bird",
    "boat",
    "bottle",
    "bus",
    "car",
    "cat",
    "chair",
    "cow",
    "diningtable",
    "dog",
    "horse",
    "motorbike",
    "person",
    "pottedplant",
    "sheep",
    "sofa",
    "train",
    "tvmonitor",
)
ROOT = "VOCdevkit/VOC2007"
SPLITS = {"train": "trainval", "test": "test"}
MOST_BYTES = 10**6


class Object(NamedTuple):
    """An object in an image: its class, its box, and whether VOC calls it difficult."""

    label: int
    box: tuple[float, float, float, float]
    difficult: bool

    @property
    def area(self) -> float:
        """The area of the box."""
        left, top, right, bottom = self.box
        return (right - left) * (bottom - top)


class Annotated(NamedTuple):
    """An image and the objects in it."""

    path: Path
    objects: list[Object]


def load_voc2007(folder: Path, options: Options) -> tuple[LabelledData, LabelledData]:
    """Reads ``VOCdevkit/VOC2007``: whole images, trainval to train on, test to test on.

    VOC asks of each image which classes it shows; the paper reports one accuracy. Here an
    image's label is the class of its largest object that is not marked difficult: what a person
    would most likely name, and one answer per image, so that accuracy is what it says. Difficult
    objects do not count, as in VOC's own evaluation, and an image with no others is left out.
    The classes of all objects that count are in ``present``.

    Training images are augmented by random resized crop and flip; of others the shorter side is
    resized to 256 px and the centre of 224 px is cut out. See :func:`load_voc2007_objects` for
    what the authors' code does.
    """
    images = ImageSet("voc2007", CLASSES, options, options.pool())
    augmentation = options.augmentation("voc2007", ResizedCropFlip())
    train, test = (_by_image(_read_split(folder / ROOT, split)) for split in SPLITS.values())
    return images.split("train", train, augmentation), images.split("test", test)


def load_voc2007_objects(folder: Path, options: Options) -> tuple[LabelledData, LabelledData]:
    """Reads the same files, with every object an example of its own, cut out by its box.

    So the authors' published code reads VOC, difficult objects included: the paper's figures
    compare with this. Test objects are squeezed into the square as a whole.
    """
    name = "voc2007-objects"
    images = ImageSet(name, CLASSES, options, options.pool(), margin=None)
    augmentation = options.augmentation(name, ResizedCropFlip())
    train, test = (_by_object(_read_split(folder / ROOT, split)) for split in SPLITS.values())
    return images.split("train", train, augmentation), images.split("test", test)


def _by_image(annotated: list[Annotated]) -> Listing:
    counted = [
        (image.path, [thing for thing in image.objects if not thing.difficult])
        for image in annotated
    ]
    counted = [(path, objects) for path, objects in counted if objects]
    present = torch.zeros(len(counted), len(CLASSES), dtype=torch.bool)
    for row, (_, objects) in zip(present, counted, strict=True):
        row[[thing.label for thing in objects]] = True
    labels = [max(objects, key=lambda thing: thing.area).label for _, objects in counted]
    return Listing([path for path, _ in counted], labels, present)


def _by_object(annotated: list[Annotated]) -> Listing:
    pairs = [(image.path, thing) for image in annotated for thing in image.objects]
    return Listing(
        [path for path, _ in pairs],
        [thing.label for _, thing in pairs],
        regions=[thing.box for _, thing in pairs],
    )


def _read_split(root: Path, split: str) -> list[Annotated]:
    path = root / "ImageSets" / "Main" / f"{split}.txt"
    names = read_text(path, MOST_BYTES).split()
    for name in names:
        if not re.fullmatch(r"\w+", name):
            raise DataError(
                f"{path} names an image {name!r}.",
                "Put VOC's own file there; its names are numbers such as 000005.",
            )
    return [
        Annotated(root / "JPEGImages" / f"{name}.jpg", _read_objects(root, name)) for name in names
    ]


def _read_objects(root: Path, name: str) -> list[Object]:
    path = root / "Annotations" / f"{name}.xml"
    try:
        return [
            Object(
                CLASSES.index(thing.findtext("name", "").strip()),
                _box(thing),
                thing.findtext("difficult", "0").strip() == "1",
            )
            for thing in read_xml(path).iterfind("object")
        ]
    except ValueError as error:
        raise DataError(
            f"{path} has an object without a class of VOC or without a box: {error}.",
            "Put VOC's own file there.",
        ) from error


def _box(thing: Element) -> tuple[float, float, float, float]:
    sides = (
        float(thing.findtext(f"bndbox/{side}", "")) for side in ("xmin", "ymin", "xmax", "ymax")
    )
    left, top, right, bottom = sides
    # VOC counts pixels from 1, the last one included.
    left, top = left - 1, top - 1
    if not (0 <= left < right < math.inf and 0 <= top < bottom < math.inf):
        raise ValueError(f"the box {left, top, right, bottom} is not one")
    return left, top, right, bottom
