"""MNIST: 60,000 training and 10,000 test images of digits, 28×28."""

from pathlib import Path

from ..errors import DataError
from .folder import find_file
from .idx import read_idx
from .labelled import LabelledData, Normalization

NORMALIZATION = Normalization((0.1307,), (0.3081,))


def load_mnist(data_dir: Path) -> tuple[LabelledData, LabelledData]:
    """Reads the four idx files, ``.gz`` or not, below ``data_dir/mnist``."""
    folder = data_dir / "mnist"
    return _split(folder, "train", "train"), _split(folder, "t10k", "test")


def _split(folder: Path, prefix: str, split: str) -> LabelledData:
    names = f"{prefix}-images-idx3-ubyte", f"{prefix}-labels-idx1-ubyte"
    images_file, labels_file = (find_file(folder, f"{name}.gz", name) for name in names)
    images, labels = read_idx(images_file), read_idx(labels_file)
    if images.ndim != 3 or images.shape[1:] != (28, 28) or labels.shape != images.shape[:1]:
        raise DataError(
            f"{images_file} holds images of shape {tuple(images.shape)} and {labels_file} labels "
            f"of shape {tuple(labels.shape)}: not MNIST.",
            "Fetch the four files of MNIST again from their source.",
        )
    return LabelledData(
        images[:, None],
        labels.long(),
        normalization=NORMALIZATION,
        class_names=tuple("0123456789"),
        name="mnist",
        split=split,
    )
