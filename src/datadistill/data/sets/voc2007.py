"""PASCAL-VOC 2007: photographs of everyday scenes with objects of 20 classes."""

import math
import re
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element

import torch

from ...errors import DataError
from ..data_set import DataSet, register
from ..formats.safe_xml import read_xml
from ..formats.unpack import read_text
from ..images.augmentation import ResizedCropFlip
from ..images.listing import ImageSet, Listing
from ..labelled import LabelledData
from ..options import Options
from ..sources import archive

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
    """An object in an image: its class, its box, and whether it is marked difficult."""

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
    """Reads ``VOCdevkit/VOC2007``: whole images, split into ``trainval`` and ``test``.

    VOC is a multi-label data set, but the paper reports one accuracy. Here the label of an image
    is the class of its largest object that is not marked difficult. This is what a person would
    most likely name, and gives one answer per image. Difficult objects do not count, as in VOC's
    own evaluation; images without other objects are left out. The classes of all objects that
    count are in ``present``.

    Training images are augmented by random resized crop and flip. Otherwise the shorter side is
    resized to 256 pixels and the central 224 pixels are cropped. The authors' code does what
    ``voc2007-objects`` does.
    """
    images = ImageSet("voc2007", CLASSES, options, options.pool())
    augmentation = options.augmentation("voc2007", ResizedCropFlip())
    train, test = (_by_image(read_split(folder / ROOT, split)) for split in SPLITS.values())
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


def read_split(root: Path, split: str) -> list[Annotated]:
    """Reads the annotations of all images of a split, ``trainval`` or ``test``."""
    path = root / "ImageSets" / "Main" / f"{split}.txt"
    names = read_text(path, MOST_BYTES).split()
    for name in names:
        if not re.fullmatch(r"\w+", name):
            raise DataError(
                f"{path} contains the image name {name!r}.",
                "Use the original file of VOC; its names are numbers such as 000005.",
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
            f"{path} has an object without a valid class or bounding box: {error}.",
            "Use the original file of VOC.",
        ) from error


def _box(thing: Element) -> tuple[float, float, float, float]:
    sides = (
        float(thing.findtext(f"bndbox/{side}", "")) for side in ("xmin", "ymin", "xmax", "ymax")
    )
    left, top, right, bottom = sides
    # VOC counts pixels from 1, the last one included.
    left, top = left - 1, top - 1
    if not (0 <= left < right < math.inf and 0 <= top < bottom < math.inf):
        raise ValueError(f"invalid box {left, top, right, bottom}")
    return left, top, right, bottom


_SITE = "http://host.robots.ox.ac.uk/pascal/VOC/voc2007"
_MEMBERS = (
    r"VOCdevkit/VOC2007/(JPEGImages/\d{6}\.jpg|Annotations/\d{6}\.xml|ImageSets/Main/\w+\.txt)"
)
_LISTS = {split: f"ImageSets/Main/{split}.txt" for split in SPLITS.values()}

DATA_SET = register(
    DataSet(
        name="voc2007",
        what="PASCAL-VOC 2007: 5,011 + 4,952 photographs, labelled by their largest object",
        input_shape=(3, 224, 224),
        classes=20,
        folder="voc2007",
        files=tuple(
            (f"{ROOT}/{name}",) for name in ("JPEGImages", "Annotations", *_LISTS.values())
        ),
        origin=f"{_SITE}/",
        canonical=True,
        loader=load_voc2007,
        downloads=(
            archive(
                f"{_SITE}/VOCtrainval_06-Nov-2007.tar",
                "md5:c52e279531787c972589f7e41ab4ae64",
                460_032_000,
                gives=(f"{ROOT}/{_LISTS['trainval']}",),
                members=_MEMBERS,
            ),
            archive(
                f"{_SITE}/VOCtest_06-Nov-2007.tar",
                "md5:b6e924de25625d8de591ea690078ad9f",
                451_020_800,
                gives=(f"{ROOT}/{_LISTS['test']}",),
                members=_MEMBERS,
            ),
        ),
        licence="photographs under Flickr's terms of use",
        order=90,
    )
)
