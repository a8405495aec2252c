"""Image folders: one folder per class."""

import os
from dataclasses import replace
from pathlib import Path

from ...errors import DataError
from ..labelled import LabelledData
from ..options import Options
from .augmentation import ResizedCropFlip
from .listing import ImageSet, Listing

SUFFIXES = {".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}
TEST_SHARE = 0.2


def load_image_folder(folder: Path, options: Options) -> tuple[LabelledData, LabelledData]:
    """Reads ``train/<class>/…`` and ``test/<class>/…``, or ``<class>/…`` split by the seed.

    Images are 3×224×224 by default: the shorter side is resized and the centre is cropped, so
    images of that size are left unchanged. They are normalised with the mean and standard
    deviation of ImageNet. They are augmented, by random resized crop and flip, only with
    ``augment=True``, because a flip may change the class.

    Without a split, a fifth of each class is used for testing. Files without an image extension
    and hidden files are skipped.
    """
    name = folder.resolve().name
    if (folder / "train").is_dir() or (folder / "test").is_dir():
        return load_split_folders(folder, options, name, augment=False, margin=1.0)
    classes = _classes(folder)
    images = ImageSet(name, tuple(classes), options, options.pool(), margin=1.0)
    for label, files in classes.items():
        if round(TEST_SHARE * len(files)) < 1:
            raise DataError(
                f"{folder / label} has {len(files)} images, too few to test on {TEST_SHARE:.0%}.",
                f"Add images, or split them yourself: {folder}/train/{label} and "
                f"{folder}/test/{label}.",
            )
    train, test = images.split("train", _listing(classes)).hold_out(TEST_SHARE, options.seed)
    augmentation = options.augmentation(name, ResizedCropFlip(), by_default=False)
    return replace(train, augmentation=augmentation), replace(test, split="test")


def load_split_folders(
    folder: Path, options: Options, name: str, *, augment: bool, margin: float
) -> tuple[LabelledData, LabelledData]:
    """Reads ``train/<class>/…`` and ``test/<class>/…``."""
    train, test = _classes(folder / "train"), _classes(folder / "test")
    for here, there, where in (train, test, "test"), (test, train, "train"):
        if extra := [label for label in here if label not in there]:
            raise DataError(
                f"{folder / where / extra[0]} is missing: only one of train and test has images of "
                f"{extra[0]}.",
                "Both splits need a folder for every class.",
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
