"""USPS: 7,291 training and 2,007 test images of digits from envelopes, 16×16."""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from ..core.random import stream
from .augmentation import Affine
from .folder import find_file
from .labelled import LabelledData
from .normalization import Normalization
from .options import Options
from .unpack import damaged, unpack
from .variant import as_asked, resized

MOST_BYTES = 10_000 * 256 * 16
SIZE = 28  # as the paper shows them to a network made for MNIST
MARGIN = 3
MIXED_SHARE = 0.8  # 7,438 of 9,298

# The paper's code normalises with these, those of a file of USPS at 28×28 whose mean tells that
# the digits have a margin, as MNIST's have: ours with 3 pixels has .1579, without any .2560.
# That file is paler: ours has a standard deviation of .3149.
NORMALIZATION = Normalization((0.1597,), (0.2573,))


def load_usps(folder: Path, options: Options) -> tuple[LabelledData, LabelledData]:
    """Reads the two files of LIBSVM's site, ``.bz2`` or not.

    Labels 1 to 10 are the digits 0 to 9; values −1 to 1 become bytes. Images are 28×28: the
    digits, 16×16 in the files, are enlarged to 22×22 and have a black margin of 3 pixels. At any
    other size they fill the image.
    """
    options = replace(options, size=options.size or SIZE)
    train, test = _split(folder, "usps", "train"), _split(folder, "usps.t", "test")
    if options.size == SIZE:
        train, test = _with_margin(train), _with_margin(test)
    return as_asked(train, test, options, Affine(), by_default=False)


def load_usps_mixed(folder: Path, options: Options) -> tuple[LabelledData, LabelledData]:
    """Reads USPS and divides all of it at random, into as many images as the paper's authors had.

    USPS's own test images are harder than its training images; those of a random division are not.
    The authors' division itself is not known.
    """
    parts = load_usps(folder, options)
    inputs, labels = (torch.cat([getattr(p, name) for p in parts]) for name in ("inputs", "labels"))
    everything = replace(parts[0], inputs=inputs, labels=labels, name="usps-mixed")
    order = torch.randperm(len(everything), generator=stream(0, "usps-mixed"))
    share = round(MIXED_SHARE * len(everything))
    train, test = everything.part(order[:share], "train"), everything.part(order[share:], "test")
    return train, replace(test, augmentation=None)


def _with_margin(data: LabelledData) -> LabelledData:
    """Shows 16×16 digits as large in 28×28 as those of MNIST nearly are."""
    assert isinstance(data.inputs, torch.Tensor)
    digits = resized(data.inputs, SIZE - 2 * MARGIN)
    return replace(data, inputs=F.pad(digits, (MARGIN,) * 4))


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
