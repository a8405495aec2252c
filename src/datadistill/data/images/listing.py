"""Labelled data from a list of image files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from ...errors import DataError
from ..labelled import LabelledData
from ..normalization import IMAGENET, Normalization
from ..options import Options
from .augmentation import Augmentation
from .decoding_pool import DecodingPool
from .image_files import USUAL_MARGIN, ImageFiles

SIZE = 224


@dataclass(frozen=True)
class Listing:
    """The images of one split.

    Attributes:
        paths: Their files.
        labels: The class of each.
        present: (images, classes): all classes in each image, if there may be several.
        regions: The part of each image to use, if not all of it.
    """

    paths: Sequence[Path]
    labels: Sequence[int]
    present: Tensor | None = None
    regions: Sequence[tuple[float, float, float, float]] | None = None


@dataclass(frozen=True)
class ImageSet:
    """What all splits of a set of image files have in common.

    Attributes:
        name: The name of the data set.
        class_names: Its classes.
        options: Size and channels of the images.
        pool: Decodes the images of all splits.
        normalization: Mean and standard deviation of the colour channels.
        margin: See :class:`ImageFiles`.
    """

    name: str
    class_names: tuple[str, ...]
    options: Options
    pool: DecodingPool
    normalization: Normalization = IMAGENET
    margin: float | None = USUAL_MARGIN

    def split(
        self, split: str, listing: Listing, augmentation: Augmentation | None = None
    ) -> LabelledData:
        """Returns one split; its images stay in their files."""
        for path in listing.paths:
            if not _is_file(path):
                raise DataError(
                    f"{path} is missing, but it belongs to the {split} split of {self.name}.",
                    "Add the file, or remove it from the lists of the data set.",
                )
        channels = self.options.channels or 3
        files = ImageFiles(
            tuple(map(str, listing.paths)),
            self.options.size or SIZE,
            channels,
            self.pool,
            self.margin,
            None if listing.regions is None else tuple(listing.regions),
        )
        return LabelledData(
            files,
            torch.tensor(listing.labels, dtype=torch.int64),
            self.normalization.with_channels(channels),
            self.class_names,
            self.name,
            split,
            augmentation,
            listing.present,
        )


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # e.g. a name that is too long
        return False
