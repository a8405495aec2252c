"""Image folders: one folder per class."""

import os
from dataclasses import replace
from pathlib import Path

from ..errors import DataError
from .augmentation import ResizedCropFlip
from .image_files import USUAL_MARGIN
from .labelled import LabelledData
from .listing import ImageSet, Listing
from .options import Options

SUFFIXES = {".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}
TEST_SHARE = 0.2


def load_image_folder(folder: Path, options: Options) -> tuple[LabelledData, LabelledData]:
    """Reads ``train/<class>/…`` and ``test/<class>/…``, or ``<class>/…`` split by the seed.

    Images are 3×224×224 unless asked otherwise: the shorter side is resized and the centre cut
    out, so that images that have that size already are left as they are. They are normalised
    with the mean and standard deviation of ImageNet. They are augmented, by random resized crop
    and flip, only if asked: who knows whether a flipped image keeps its class?

    Of classes without a split a fifth is for the test. Files that are no images by their
    names, and those that begin with a dot, are passed over.
    """
    name = folder.resolve().name
    if (folder / "train").is_dir() or (folder / "test").is_dir():
        return load_split_folders(folder, options, name, augment=False, margin=1.0)
    classes = _classes(folder)
    images = ImageSet(name, tuple(classes), options, options.pool(), margin=1.0)
    for label, files in classes.items():
        if round(TEST_SHARE * len(files)) < 1:
            raise DataError(
                f"{folder / label} has {len(files)} images: too few to test on {TEST_SHARE:.0%}.",
                f"Add images, or make the split yourself: {folder}/train/{label} and "
                f"{folder}/test/{label}.",
            )
    train, test = images.split("train", _listing(classes)).hold_out(TEST_SHARE, options.seed)
    augmentation = options.augmentation(name, ResizedCropFlip(), by_default=False)
    return replace(train, augmentation=augmentation), replace(test, split="test")


def load_caltech20(folder: Path, options: Options) -> tuple[LabelledData, LabelledData]:
    """Reads caltech20: 50 training and 25 test images of 20 classes of Caltech-101.

    It stands in for PASCAL-VOC 2007 and is augmented likewise; results do not compare with VOC.
    """
    return load_split_folders(folder, options, "caltech20", augment=True, margin=USUAL_MARGIN)


def load_split_folders(
    folder: Path, options: Options, name: str, *, augment: bool, margin: float
) -> tuple[LabelledData, LabelledData]:
    """Reads ``train/<class>/…`` and ``test/<class>/…``."""
    train, test = _classes(folder / "train"), _classes(folder / "test")
    for here, there, where in (train, test, "test"), (test, train, "train"):
        if extra := [label for label in here if label not in there]:
            raise DataError(
                f"{folder / where / extra[0]} is missing: there are images of {extra[0]} in only "
                "one of train and test.",
                "Give both splits a folder for every class.",
            )
    images = ImageSet(name, tuple(train), options, options.pool(), margin=margin)
    augmentation = options.augmentation(name, ResizedCropFlip(), by_default=augment)
    return (
        images.split("train", _listing(train), augmentation),
        images.split("test", _listing(test)),
    )


def _listing(classes: dict[str, list[Path]]) -> Listing:
    labelled = [(path, n) for n, files in enumerate(classes.values()) for path in files]
    return Listing([path for path, _ in labelled], [label for _, label in labelled])


def _classes(folder: Path) -> dict[str, list[Path]]:
    """Returns the images of every class, both in the order of their names."""
    layout = f"Lay it out as {folder}/<class>/<image>."
    try:
        entries = sorted(folder.iterdir())
        classes = {
            entry.name: _images(entry)
            for entry in entries
            if entry.is_dir() and not entry.name.startswith(".")
        }
    except OSError as error:
        raise DataError(f"{folder} cannot be read: {error.strerror}.", layout) from error
    if not classes:
        raise DataError(f"{folder} has no folders of classes in it.", layout)
    for label, files in classes.items():
        if not files:
            raise DataError(
                f"{folder / label} has no images in it ({', '.join(sorted(SUFFIXES))}).",
                "Put images of that class into it, or remove the folder.",
            )
    return classes


def _images(folder: Path) -> list[Path]:
    return sorted(
        Path(place) / name
        for place, _, names in os.walk(folder)
        for name in names
        if not name.startswith(".") and Path(name).suffix.lower() in SUFFIXES
    )
