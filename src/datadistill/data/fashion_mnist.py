"""Fashion-MNIST: 60,000 training and 10,000 test images of clothes, in MNIST's format."""

from pathlib import Path

from .labelled import LabelledData
from .mnist import load_idx_pairs
from .normalization import Normalization
from .options import Options

CLASSES = (
    "t-shirt",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)


def load_fashion_mnist(folder: Path, options: Options) -> tuple[LabelledData, LabelledData]:
    """Reads the four idx files, ``.gz`` or not."""
    # Mean and standard deviation of its own training images.
    normalization = Normalization((0.2860,), (0.3530,))
    return load_idx_pairs(folder, options, "fashion-mnist", CLASSES, normalization)
