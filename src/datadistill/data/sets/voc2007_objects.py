"""voc2007-objects: every object of PASCAL-VOC 2007, cropped from its photograph."""

from dataclasses import replace
from pathlib import Path

from ..data_set import register
from ..images.augmentation import ResizedCropFlip
from ..images.listing import ImageSet, Listing
from ..labelled import LabelledData
from ..options import Options
from .voc2007 import CLASSES, ROOT, SPLITS, Annotated, read_split
from .voc2007 import DATA_SET as VOC2007


def load_voc2007_objects(folder: Path, options: Options) -> tuple[LabelledData, LabelledData]:
    """Reads the files of ``voc2007``, with one example per object, cropped to its box.

    The authors' published code reads VOC like this, including difficult objects: compare the
    paper's results with this data set. Test objects are stretched to a square.
    """
    name = "voc2007-objects"
    images = ImageSet(name, CLASSES, options, options.pool(), margin=None)
    augmentation = options.augmentation(name, ResizedCropFlip())
    train, test = (_by_object(read_split(folder / ROOT, split)) for split in SPLITS.values())
    return images.split("train", train, augmentation), images.split("test", test)


def _by_object(annotated: list[Annotated]) -> Listing:
    pairs = [(image.path, thing) for image in annotated for thing in image.objects]
    return Listing(
        [path for path, _ in pairs],
        [thing.label for _, thing in pairs],
        regions=[thing.box for _, thing in pairs],
    )


DATA_SET = register(
    replace(
        VOC2007,
        name="voc2007-objects",
        what="PASCAL-VOC 2007: 15,662 + 14,976 objects, cut out of the photographs",
        loader=load_voc2007_objects,
        order=100,
    )
)
