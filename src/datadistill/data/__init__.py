"""Real data: data sets by name, and your own."""

import os
from pathlib import Path
from typing import Literal

from ..errors import DataError, did_you_mean
from ..importing import is_reference
from . import sets as sets  # registers every data set
from .by_reference import load_by_reference
from .data_set import DATA_SETS, DataSet, catalogue, decoder_of, register
from .decoding import Decoder
from .folder import data_folder
from .formats.csv import load_csv
from .formats.npz import load_arrays
from .images.augmentation import Affine, Augmentation, PadCropFlip, ResizedCropFlip
from .images.decoding_pool import CACHE_BYTES
from .images.image_files import ImageFiles
from .images.image_folder import load_image_folder
from .labelled import LabelledData
from .labels import from_zero, in_order_of
from .normalization import IMAGENET, Normalization
from .normalizing import normalized_with
from .options import Options, Statistics
from .own import as_data


def load(
    name: str | Path,
    data_dir: str | Path | None = None,
    *,
    size: int | None = None,
    channels: Literal[1, 3] | None = None,
    augment: bool | None = None,
    seed: int = 0,
    workers: int | None = None,
    cache_bytes: int = CACHE_BYTES,
    normalization: Statistics = None,
) -> tuple[LabelledData, LabelledData]:
    """Returns the training and the test split of a data set.

    Example::

        train, test = dd.data.load("mnist", channels=3)  # 3×28×28, to go with SVHN
        train, test = dd.data.load("svhn", size=28)
        train, test = dd.data.load("photos/", size=64)  # photos/train/cat/1.jpg …
        train, test = dd.data.load("mine.npz")  # or "mine.csv"
        train, test = dd.data.load("mine.py:MY_SET")  # a DataSet, or a function

    Args:
        name: One of :func:`catalogue`, e.g. ``digits`` (always available) or ``mnist``; or the
            path of an image folder, ``train/<class>/…`` and ``test/<class>/…`` or just
            ``<class>/…``; or the path of an ``.npz`` file, see :func:`load_arrays`, or a ``.csv``
            file, see :func:`load_csv`; or a data set defined in Python, ``file.py:NAME`` or
            ``package.module:NAME``: a :class:`DataSet`, or a function that returns the training
            and the test data. Loading it runs that code.
        data_dir: The data folder; ``$DATADISTILL_DATA`` or the user's cache by default.
        size: Height and width to resize images to; their own by default.
        channels: 1 for grey, 3 for colour; their own by default.
        augment: Whether training images are augmented in batches that are given a generator.
            By default they are where the paper does so (CIFAR-10, VOC, CUB-200).
        seed: Selects the test images of a folder without a split.
        workers: Number of processes that decode image files; 0 decodes in this process. One per
            core by default. The images do not depend on it.
        cache_bytes: How many bytes of decoded image files to keep in memory.
        normalization: What pixels are normalised with: ``"data"``, the mean and standard
            deviation of the training images; ``"imagenet"``, for networks pre-trained on it; or a
            :class:`Normalization`. By default what the data set has; ``"data"`` for your own.
    """
    if not isinstance(name, str | Path):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DataError(
            f"{type(name).__name__} is not a name or path of data.",
            "Pass a string or path; convert data in memory with dd.data.as_data.",
        )
    options = Options(size, channels, augment, seed, workers, cache_bytes, normalization)
    if str(name) in DATA_SETS:
        train, test = DATA_SETS[str(name)].load(data_folder(data_dir), options)
    else:
        train, test = _load_own(name, data_dir, options)
        numbered = from_zero(train)
        test = test if numbered is train else in_order_of(numbered.class_names, test)
        train = numbered
    return normalized_with(normalization, train, test)


FILES = {".npz": load_arrays, ".csv": load_csv}
"""Readers of a user's own files, by their extension."""


def _load_own(
    name: str | Path, data_dir: str | Path | None, options: Options
) -> tuple[LabelledData, LabelledData]:
    path = Path(os.path.expanduser(name))  # noqa: PTH111 - of no known home it stays as it is
    if path.is_dir():
        return load_image_folder(path, options)
    if path.is_file() and path.suffix.lower() in FILES:
        return FILES[path.suffix.lower()](path, options)
    if not path.exists() and is_reference(str(name)):
        return load_by_reference(str(name), data_folder(data_dir), options)
    raise _unknown(name, path)


def _unknown(name: str | Path, path: Path) -> DataError:
    choices = (
        f"Choose one of: {', '.join(DATA_SETS)}; or a folder of images, an .npz or .csv file, or "
        "your own as path/to/file.py:NAME."
    )
    if path.is_file():
        return DataError(f"{path} is not an .npz or .csv file.", choices)
    looks_like_path = path.suffix or len(path.parts) > 1 or str(name).endswith(("/", "\\"))
    if isinstance(name, Path) or looks_like_path:
        return DataError(f"There is no file or folder {path}.", choices)
    return DataError(
        f"There is no data set called {name!r}.{did_you_mean(name, DATA_SETS)}", choices
    )


__all__ = [
    "CACHE_BYTES",
    "DATA_SETS",
    "IMAGENET",
    "Affine",
    "Augmentation",
    "DataSet",
    "Decoder",
    "ImageFiles",
    "LabelledData",
    "Normalization",
    "Options",
    "PadCropFlip",
    "ResizedCropFlip",
    "Statistics",
    "as_data",
    "catalogue",
    "data_folder",
    "decoder_of",
    "load",
    "load_arrays",
    "load_csv",
    "load_image_folder",
    "register",
]
