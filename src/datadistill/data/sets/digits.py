"""digits: the 1,797 handwritten digits of scikit-learn, enlarged to 28×28."""

import importlib.util
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from ..data_set import DataSet, register
from ..images.augmentation import Affine
from ..images.conversion import apply_options
from ..labelled import LabelledData
from ..normalization import Normalization
from ..options import Options

TEST_EXAMPLES = 360


def load_digits(folder: Path, options: Options) -> tuple[LabelledData, LabelledData]:
    """Returns a fixed split: 1,437 training and 360 test images. Needs no files."""
    pixels, digits = _embedded()
    small = torch.from_numpy(pixels).float().reshape(-1, 1, 8, 8)  # whole numbers 0 to 16
    large = F.interpolate(small, size=28, mode="bilinear", align_corners=False)
    images = (large * (255 / 16)).round().to(torch.uint8)
    # The streams of RandomState are frozen, so the split never changes.
    order = torch.from_numpy(np.random.RandomState(0).permutation(len(images)))
    train, test = order[TEST_EXAMPLES:], order[:TEST_EXAMPLES]
    training_pixels = images[train].double() / 255
    everything = LabelledData(
        images,
        torch.from_numpy(digits).long(),
        normalization=Normalization(
            (round(float(training_pixels.mean()), 4),), (round(float(training_pixels.std()), 4),)
        ),
        class_names=tuple("0123456789"),
        name="digits",
    )
    return apply_options(
        everything.part(train, "train"),
        everything.part(test, "test"),
        options,
        Affine(),
        by_default=False,
    )


def _embedded() -> tuple[np.ndarray, np.ndarray]:
    """The 8×8 pixels and the labels that come with scikit-learn.

    From its file, since to import its functions takes a second.
    """
    package = importlib.util.find_spec("sklearn")
    for place in (package.submodule_search_locations or ()) if package else ():
        file = Path(place, "datasets", "data", "digits.csv.gz")
        if file.is_file():
            rows = np.loadtxt(file, delimiter=",")
            return rows[:, :-1], rows[:, -1].astype(np.int64)
    from sklearn.datasets import load_digits as load_embedded

    pixels, digits = load_embedded(return_X_y=True)
    return np.asarray(pixels), np.asarray(digits)


DATA_SET = register(
    DataSet(
        name="digits",
        what="1,437 + 360 handwritten digits that come with scikit-learn; needs no files",
        input_shape=(1, 28, 28),
        classes=10,
        origin="scikit-learn",
        loader=load_digits,
        order=10,
    )
)
