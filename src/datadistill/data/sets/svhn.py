"""SVHN: cropped digits of house numbers, 73,257 to train and 26,032 to test, 3×32×32."""

from pathlib import Path

import numpy as np
import torch

from ..data_set import DataSet, register
from ..folder import find_file
from ..formats.mat import read_mat
from ..formats.unpack import damaged
from ..images.augmentation import Affine
from ..images.conversion import apply_options
from ..labelled import LabelledData
from ..normalization import Normalization
from ..options import Options
from ..sources import mirrored

MOST_EXAMPLES = 100_000
IMAGE = (32, 32, 3)
FILES = ("train_32x32.mat", "test_32x32.mat")


def load_svhn(folder: Path, options: Options) -> tuple[LabelledData, LabelledData]:
    """Reads ``train_32x32.mat`` and ``test_32x32.mat``; label 10 is the digit 0."""
    normalization = Normalization((0.4379, 0.4440, 0.4729), (0.1980, 0.2010, 0.1970))
    return load_mat_pair(folder, options, "svhn", normalization)


def load_mat_pair(
    folder: Path, options: Options, name: str, normalization: Normalization
) -> tuple[LabelledData, LabelledData]:
    """Reads a data set that has the two files of SVHN."""

    def split(split: str) -> LabelledData:
        path = find_file(folder, f"{split}_32x32.mat")
        most = {"X": MOST_EXAMPLES * 32 * 32 * 3, "y": MOST_EXAMPLES * 8}
        arrays = read_mat(path, most)
        pixels, digits = arrays["X"], arrays["y"].flatten()
        if pixels.shape[:3] != IMAGE or pixels.ndim != 4 or pixels.dtype != np.uint8:
            raise damaged(
                path, f"has X of {pixels.dtype} {pixels.shape}, not bytes (32, 32, 3, examples)"
            )
        if len(digits) != pixels.shape[3] or not np.isin(digits, np.arange(1, 11)).all():
            raise damaged(path, "has y that is not one label, 1 to 10, for each image of X")
        images = np.ascontiguousarray(pixels.transpose(3, 2, 0, 1))
        labels = torch.from_numpy(digits.astype(np.int64) % 10)
        return LabelledData(
            torch.from_numpy(images), labels, normalization, tuple("0123456789"), name, split
        )

    return apply_options(split("train"), split("test"), options, Affine(), by_default=False)


DATA_SET = register(
    DataSet(
        name="svhn",
        what="SVHN: 73,257 + 26,032 digits of house numbers",
        input_shape=(3, 32, 32),
        classes=10,
        folder="svhn",
        files=tuple((name,) for name in FILES),
        origin="http://ufldl.stanford.edu/housenumbers/",
        canonical=True,
        loader=load_svhn,
        downloads=mirrored(
            ("http://ufldl.stanford.edu/housenumbers",),
            {
                "train_32x32.mat": ("md5:e26dedcc434d2e4c54c9b2d4a06d8373", 182_040_794),
                "test_32x32.mat": ("md5:eb5a983be6a315427106f1b164d9cef3", 64_275_384),
            },
        ),
        licence="for non-commercial use",
        order=60,
    )
)
