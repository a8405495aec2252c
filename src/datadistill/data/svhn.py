"""SVHN: cropped digits of house numbers, 73,257 to train and 26,032 to test, 3×32×32."""

from pathlib import Path

import numpy as np
import torch

from .augmentation import Affine
from .folder import find_file
from .labelled import LabelledData
from .mat import read_mat
from .normalization import Normalization
from .options import Options
from .unpack import damaged
from .variant import as_asked

MOST_EXAMPLES = 100_000
IMAGE = (32, 32, 3)


def load_svhn(folder: Path, options: Options) -> tuple[LabelledData, LabelledData]:
    """Reads ``train_32x32.mat`` and ``test_32x32.mat``; label 10 is the digit 0."""
    normalization = Normalization((0.4379, 0.4440, 0.4729), (0.1980, 0.2010, 0.1970))
    return load_mat_pair(folder, options, "svhn", normalization)


def load_svhn_gray(folder: Path, options: Options) -> tuple[LabelledData, LabelledData]:
    """Reads svhn-gray: digits cut from SVHN's test photographs, grey, in SVHN's format.

    It is not SVHN, and results on it do not compare with results on SVHN.
    """
    # Mean and standard deviation of its own training images.
    normalization = Normalization((0.4539,) * 3, (0.2147,) * 3)
    return load_mat_pair(folder, options, "svhn-gray", normalization)


def load_mat_pair(
    folder: Path, options: Options, name: str, normalization: Normalization
) -> tuple[LabelledData, LabelledData]:
    """Reads a data set in the two files of SVHN."""

    def split(split: str) -> LabelledData:
        path = find_file(folder, f"{split}_32x32.mat")
        most = {"X": MOST_EXAMPLES * 32 * 32 * 3, "y": MOST_EXAMPLES * 8}
        arrays = read_mat(path, most)
        pixels, digits = arrays["X"], arrays["y"].flatten()
        if pixels.shape[:3] != IMAGE or pixels.ndim != 4 or pixels.dtype != np.uint8:
            raise damaged(
                path, f"holds X of {pixels.dtype} {pixels.shape}, not bytes (32, 32, 3, examples)"
            )
        if len(digits) != pixels.shape[3] or not np.isin(digits, np.arange(1, 11)).all():
            raise damaged(path, "holds y that is not one label, 1 to 10, for each image of X")
        images = np.ascontiguousarray(pixels.transpose(3, 2, 0, 1))
        labels = torch.from_numpy(digits.astype(np.int64) % 10)
        return LabelledData(
            torch.from_numpy(images), labels, normalization, tuple("0123456789"), name, split
        )

    return as_asked(split("train"), split("test"), options, Affine(), by_default=False)
