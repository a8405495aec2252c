"""USPS: 7,291 training and 2,007 test images of digits from envelopes, 16×16."""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from .folder import find_file
from .labelled import LabelledData
from .normalization import Normalization
from .options import Options
from .unpack import damaged, unpack
from .variant import as_asked

MOST_BYTES = 10_000 * 256 * 16
SIZE = 28  # as the paper shows them to a network made for MNIST

# The paper's code normalises with these, which are those of another edition of USPS; in this
# one, at 28×28, mean and standard deviation are .2560 and .3687.
NORMALIZATION = Normalization((0.1597,), (0.2573,))


def load_usps(folder: Path, options: Options) -> tuple[LabelledData, LabelledData]:
    """Reads the two files of LIBSVM's site, ``.bz2`` or not; images are resized to 28×28.

    Labels 1 to 10 are the digits 0 to 9; values −1 to 1 become bytes.
    """
    options = replace(options, size=options.size or SIZE)
    return as_asked(_split(folder, "usps", "train"), _split(folder, "usps.t", "test"), options)


def _split(folder: Path, name: str, split: str) -> LabelledData:
    path = find_file(folder, f"{name}.bz2", name)
    pixels, labels = _read_svmlight(path)
    if not pixels.size or pixels.min() < -1 or pixels.max() > 1:
        raise damaged(path, "holds values outside −1 to 1: not USPS")
    if not np.isin(labels, np.arange(1, 11)).all():
        raise damaged(path, "holds labels that are not 1 to 10: not USPS")
    images = np.round((pixels + 1) * 127.5).astype(np.uint8).reshape(-1, 1, 16, 16)
    return LabelledData(
        torch.from_numpy(images),
        torch.from_numpy(labels).long() - 1,
        NORMALIZATION,
        tuple("0123456789"),
        "usps",
        split,
    )


def _read_svmlight(path: Path) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_svmlight_file  # slow to import

    text = unpack(path, MOST_BYTES)
    try:
        sparse, labels = load_svmlight_file(
            io.BytesIO(text),
            n_features=256,
            zero_based=False,  # pyright: ignore[reportArgumentType]
        )
    except (ValueError, OverflowError) as error:
        raise damaged(path, f"is not 256 values a line in LIBSVM's format: {error}") from error
    pixels = sparse.toarray()
    if not np.isfinite(pixels).all():
        raise damaged(path, "holds values that are NaN or infinite")
    return pixels, labels
