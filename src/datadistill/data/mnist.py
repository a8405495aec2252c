"""MNIST: 60,000 training and 10,000 test images of digits, 28×28."""

from pathlib import Path

from .augmentation import Affine
from .folder import find_file
from .idx import read_idx
from .labelled import LabelledData
from .normalization import Normalization
from .options import Options
from .unpack import damaged
from .variant import as_asked

MOST_EXAMPLES = 70_000


def load_mnist(folder: Path, options: Options) -> tuple[LabelledData, LabelledData]:
    """Reads the four idx files, ``.gz`` or not."""
    normalization = Normalization((0.1307,), (0.3081,))
    return load_idx_pairs(folder, options, "mnist", tuple("0123456789"), normalization)


def load_idx_pairs(
    folder: Path,
    options: Options,
    name: str,
    class_names: tuple[str, ...],
    normalization: Normalization,
) -> tuple[LabelledData, LabelledData]:
    """Reads a data set in the four files of MNIST."""

    def split(prefix: str, split: str) -> LabelledData:
        names = f"{prefix}-images-idx3-ubyte", f"{prefix}-labels-idx1-ubyte"
        images_file, labels_file = (find_file(folder, f"{name}.gz", name) for name in names)
        images = read_idx(images_file, MOST_EXAMPLES * 28 * 28)
        labels = read_idx(labels_file, MOST_EXAMPLES)
        if images.shape[1:] != (28, 28) or labels.shape != images.shape[:1]:
            raise damaged(
                images_file,
                f"holds images of shape {tuple(images.shape)} and {labels_file} labels of shape "
                f"{tuple(labels.shape)}: not {name}",
            )
        if labels.numel() and int(labels.max()) >= len(class_names):
            raise damaged(labels_file, f"holds a label {int(labels.max())}: not {name}")
        return LabelledData(images[:, None], labels.long(), normalization, class_names, name, split)

    return as_asked(
        split("train", "train"), split("t10k", "test"), options, Affine(), by_default=False
    )
