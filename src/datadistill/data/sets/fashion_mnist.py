"""Fashion-MNIST: 60,000 training and 10,000 test images of clothes, in MNIST's format."""

from pathlib import Path

from ..data_set import DataSet, register
from ..labelled import LabelledData
from ..normalization import Normalization
from ..options import Options
from ..sources import mirrored
from .mnist import FILES, load_idx_pairs

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
    """Reads the four idx files, compressed (``.gz``) or not."""
    # Mean and standard deviation of its own training images.
    normalization = Normalization((0.2860,), (0.3530,))
    return load_idx_pairs(folder, options, "fashion-mnist", CLASSES, normalization)


DATA_SET = register(
    DataSet(
        name="fashion-mnist",
        what="Fashion-MNIST: 60,000 + 10,000 pictures of clothes",
        input_shape=(1, 28, 28),
        classes=10,
        folder="fashion-mnist",
        files=tuple((f"{name}.gz", name) for name in FILES),
        origin="https://github.com/zalandoresearch/fashion-mnist",
        canonical=True,
        loader=load_fashion_mnist,
        downloads=mirrored(
            ("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",),
            {
                "train-images-idx3-ubyte.gz": ("md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d", 26_421_880),
                "train-labels-idx1-ubyte.gz": ("md5:25c81989df183df01b3e8a0aad5dffbe", 29_515),
                "t10k-images-idx3-ubyte.gz": ("md5:bef4ecab320f06d8554ea6380940ec79", 4_422_102),
                "t10k-labels-idx1-ubyte.gz": ("md5:bb300cfdad3c16e7a12a480ee83cd310", 5_148),
            },
        ),
        licence="MIT licence",
        order=30,
    )
)
