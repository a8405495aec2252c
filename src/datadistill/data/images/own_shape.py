"""The size and channels that image files have, read from their headers."""

import contextlib
import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from PIL import ExifTags, Image

from ...errors import DataError
from ..inputs import GREY
from ..options import Options
from .decode import FORMATS

TURNED = range(5, 9)  # EXIF orientations that swap width and height


def with_own_shape(options: Options, files: Iterable[Path], name: str) -> Options:
    """Fills in the size and channels that all image files have, unless they are given.

    Images are grey if all of them are. Files of different sizes, or that are not square, need a
    size.

    Args:
        options: What is given.
        files: The image files.
        name: The name of the data set, for error messages.
    """
    if options.size is not None and options.channels is not None:
        return options
    size, first, grey = options.size, None, True
    for file in files:
        width, height, mode = _header(file)
        grey = grey and mode in GREY
        first = first or (width, height)
        if options.size is None and (width != height or (width, height) != first):
            raise _no_size(name, first, (width, height))
        size = size or width
    return replace(options, size=size, channels=options.channels or (1 if grey else 3))


def _header(file: Path) -> tuple[int, int, str]:
    """Width, height and mode of an image file, upright."""
    try:
        if not file.is_file():  # a pipe would never end
            raise OSError("it is not a regular file")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what matters is raised
            with Image.open(file, formats=FORMATS) as image:
                width, height = image.size
                turned = False
                with contextlib.suppress(Exception):  # damaged EXIF data are common
                    turned = image.getexif().get(ExifTags.Base.Orientation) in TURNED
                return (height, width, image.mode) if turned else (width, height, image.mode)
    except Exception as error:  # a damaged file can raise nearly anything
        raise DataError(
            f"{file} cannot be read as an image: {error or type(error).__name__}.",
            f"Replace or remove this file; formats: {', '.join(FORMATS)}.",
        ) from error


def _no_size(name: str, first: tuple[int, int], other: tuple[int, int]) -> DataError:
    one, two = (f"{width}×{height}" for width, height in (first, other))
    what = f"sizes {one} and {two}" if one != two else f"size {one}, which is not square"
    return DataError(
        f"The images of {name} have the {what}.",
        "Choose a size to resize and crop them to: --size 32, or size=32 in Python.",
    )
