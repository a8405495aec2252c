"""Image folders: one folder per class."""

import os
from dataclasses import replace
from pathlib import Path

from ...errors import DataError
from ..labelled import LabelledData
from ..normalization import IMAGENET, Normalization
from ..options import Options
from .augmentation import ResizedCropFlip
from .listing import ImageSet, Listing
from .own_shape import with_own_shape

SUFFIXES = {".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}
TEST_SHARE = 0.2
Classes = dict[str, list[Path]]
"""The image files of each class."""
TEST_FOLDERS = ("test", "val", "valid", "validation")


def load_image_folder(folder: Path, options: Options) -> tuple[LabelledData, LabelledData]:
    """Reads ``train/<class>/…`` and ``test/<class>/…``, or ``<class>/…`` split by the seed.

    ``val/`` will do for ``test/``. Images keep their own size and channels by default. With a
    size, the shorter side is resized and the centre is cropped. They are normalised with the mean
    and standard deviation of the training images. They are augmented, by random resized crop and
    flip, only with ``augment=True``, because a flip may change the class.

    Without a split, a fifth of each class is used for testing. Files without an image extension
    and hidden files are skipped.
    """
    name = folder.resolve().name
    if (folder / "train").is_dir() or (folder / "test").is_dir():
        tested = next((place for place in TEST_FOLDERS if (folder / place).is_dir()), "test")
        splits = _classes_of_splits(folder, tested)
        files = (file for classes in splits for files in classes.values() for file in files)
        options = with_own_shape(options, files, name)
        train, test = _loaded(splits, options, name, augment=False, margin=1.0)
    else:
        train, test = _divided(folder, options, name)
    if options.normalization is None:
        measured = Normalization.measured(train.inputs)
        train, test = (replace(split, normalization=measured) for split in (train, test))
    return train, test


def load_split_folders(
    folder: Path, options: Options, name: str, *, augment: bool, margin: float
) -> tuple[LabelledData, LabelledData]:
    """Reads ``train/<class>/…`` and ``test/<class>/…``, normalised with ImageNet's statistics."""
    splits = _classes_of_splits(folder, "test")
    return _loaded(splits, options, name, augment=augment, margin=margin)


def _divided(folder: Path, options: Options, name: str) -> tuple[LabelledData, LabelledData]:
    """Reads ``<class>/…`` and holds out a fifth of each class."""
    classes = _classes(folder)
    for label, files in classes.items():
        if round(TEST_SHARE * len(files)) < 1:
            raise DataError(
                f"{folder / label} has {len(files)} images, too few to test on {TEST_SHARE:.0%}.",
                f"Add images, or split them yourself: {folder}/train/{label} and "
                f"{folder}/test/{label}.",
            )
    every = (file for files in classes.values() for file in files)
    options = with_own_shape(options, every, name)
    images = ImageSet(name, tuple(classes), options, options.pool(), IMAGENET, margin=1.0)
    train, test = images.split("train", _listing(classes)).hold_out(TEST_SHARE, options.seed)
    augmentation = options.augmentation(name, ResizedCropFlip(), by_default=False)
    return replace(train, augmentation=augmentation), replace(test, split="test")


def _classes_of_splits(folder: Path, tested: str) -> tuple[Classes, Classes]:
    train, test = _classes(folder / "train"), _classes(folder / tested)
    for here, there, where in (train, test, tested), (test, train, "train"):
        if extra := [label for label in here if label not in there]:
            raise DataError(
                f"{folder / where / extra[0]} is missing: only one of train and {tested} has "
                f"images of {extra[0]}.",
                "Both splits need a folder for every class.",
            )
    return train, test


def _loaded(
    splits: tuple[Classes, Classes], options: Options, name: str, *, augment: bool, margin: float
) -> tuple[LabelledData, LabelledData]:
    images = ImageSet(name, tuple(splits[0]), options, options.pool(), IMAGENET, margin=margin)
    augmentation = options.augmentation(name, ResizedCropFlip(), by_default=augment)
    train, test = map(_listing, splits)
    return images.split("train", train, augmentation), images.split("test", test)


def _listing(classes: Classes) -> Listing:
    labelled = [(path, n) for n, files in enumerate(classes.values()) for path in files]
    return Listing([path for path, _ in labelled], [label for _, label in labelled])


def _classes(folder: Path) -> Classes:
    """Returns the images of every class, both sorted by name."""
    layout = f"Arrange the images as {folder}/<class>/<image>."
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
        raise DataError(f"{folder} contains no class folders.", layout)
    for label, files in classes.items():
        if not files:
            raise DataError(
                f"{folder / label} contains no images ({', '.join(sorted(SUFFIXES))}).",
                "Add images of that class, or remove the folder.",
            )
    return classes


def _images(folder: Path) -> list[Path]:
    return sorted(
        Path(place) / name
        for place, _, names in os.walk(folder)
        for name in names
        if not name.startswith(".") and Path(name).suffix.lower() in SUFFIXES
    )
