"""The data sets that have names: what each is, where its files belong, and who reads them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import DataError
from . import cifar10, voc2007
from .cub200 import LISTS, load_cub200
from .digits import load_digits
from .fashion_mnist import load_fashion_mnist
from .image_folder import load_caltech20
from .labelled import LabelledData
from .mnist import load_mnist
from .options import Options
from .svhn import load_svhn, load_svhn_gray
from .usps import load_usps, load_usps_mixed

Loader = Callable[[Path, Options], tuple[LabelledData, LabelledData]]


@dataclass(frozen=True)
class DataSet:
    """A data set that can be loaded by name.

    Attributes:
        name: What it is called.
        what: What it holds, in a line.
        input_shape: Channels, height and width of an image as loaded by default.
        classes: How many classes it has.
        folder: Where its files belong, below the data folder.
        files: What has to be in that folder: for each thing, the names that will do.
        origin: Where it comes from.
        canonical: Whether it is the very set that the literature means by this name; results on
            others do not compare with published ones.
        loader: Reads the training and the test split from the folder.
        pickled: Names of its version in pickles, which is refused.
    """

    name: str
    what: str
    input_shape: tuple[int, int, int]
    classes: int
    folder: str
    files: tuple[tuple[str, ...], ...]
    origin: str
    canonical: bool
    loader: Loader
    pickled: tuple[str, ...] = ()

    def where(self, data_dir: Path) -> Path:
        """The folder in which its files are looked for."""
        return data_dir / self.folder

    def missing(self, data_dir: Path) -> list[Path]:
        """The files that are not there, each by its usual name; empty if it can be loaded."""
        folder = self.where(data_dir)
        return [
            folder / names[0]
            for names in self.files
            if not any((folder / name).exists() for name in names)
        ]

    def load(self, data_dir: Path, options: Options) -> tuple[LabelledData, LabelledData]:
        """Reads the training and the test split, or says which files to put where."""
        folder, missing = self.where(data_dir), self.missing(data_dir)
        for name in self.pickled if missing else ():
            if (folder / name).exists():
                raise DataError(
                    f"{folder / name} holds pickles: to read them is to run whatever is in them.",
                    f"Fetch the other version: {self.origin}.",
                )
        if missing:
            names = ", ".join(str(path.relative_to(folder)) for path in missing)
            fetch = (
                f"Run: datadistill data fetch {self.folder}. Or put" if self.canonical else "Put"
            )
            raise DataError(
                f"{self.name} is not in {folder}: {names} missing.",
                f"{fetch} {'it' if len(missing) == 1 else 'them'} there (from {self.origin}), or "
                "point --data-dir (or $DATADISTILL_DATA) at the folder that holds "
                f"{self.folder}/.",
            )
        return self.loader(folder, options)


def catalogue() -> list[DataSet]:
    """Returns a record of every data set that can be loaded by name."""
    return list(DATA_SETS.values())


_IDX = tuple(
    (f"{name}.gz", name)
    for name in (
        "train-images-idx3-ubyte",
        "train-labels-idx1-ubyte",
        "t10k-images-idx3-ubyte",
        "t10k-labels-idx1-ubyte",
    )
)
_MAT = (("train_32x32.mat",), ("test_32x32.mat",))
_CIFAR10 = tuple((f"{cifar10.FOLDER}/{name}", name, cifar10.ARCHIVE) for name in cifar10.FILES)
_VOC2007 = tuple(
    (f"{voc2007.ROOT}/{name}",)
    for name in (
        "JPEGImages",
        "Annotations",
        "ImageSets/Main/trainval.txt",
        "ImageSets/Main/test.txt",
    )
)
_CUB200 = tuple((f"CUB_200_2011/{name}",) for name in ("images", "classes.txt", *LISTS))

_USPS = DataSet(
    name="usps",
    what="USPS: 7,291 + 2,007 digits from envelopes",
    input_shape=(1, 28, 28),
    classes=10,
    folder="usps",
    files=(("usps.bz2", "usps"), ("usps.t.bz2", "usps.t")),
    origin="https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass.html#usps",
    canonical=True,
    loader=load_usps,
)

DATA_SETS: dict[str, DataSet] = {
    record.name: record
    for record in (
        DataSet(
            name="digits",
            what="1,437 + 360 handwritten digits that come with scikit-learn; needs no files",
            input_shape=(1, 28, 28),
            classes=10,
            folder="",
            files=(),
            origin="scikit-learn",
            canonical=False,
            loader=load_digits,
        ),
        DataSet(
            name="mnist",
            what="MNIST: 60,000 + 10,000 handwritten digits",
            input_shape=(1, 28, 28),
            classes=10,
            folder="mnist",
            files=_IDX,
            origin="http://yann.lecun.com/exdb/mnist/",
            canonical=True,
            loader=load_mnist,
        ),
        DataSet(
            name="fashion-mnist",
            what="Fashion-MNIST: 60,000 + 10,000 pictures of clothes",
            input_shape=(1, 28, 28),
            classes=10,
            folder="fashion-mnist",
            files=_IDX,
            origin="https://github.com/zalandoresearch/fashion-mnist",
            canonical=True,
            loader=load_fashion_mnist,
        ),
        _USPS,
        replace(
            _USPS,
            name="usps-mixed",
            what="USPS divided at random, as the paper's authors had it: 7,438 + 1,860 digits",
            canonical=False,
            loader=load_usps_mixed,
        ),
        DataSet(
            name="svhn",
            what="SVHN: 73,257 + 26,032 digits of house numbers",
            input_shape=(3, 32, 32),
            classes=10,
            folder="svhn",
            files=_MAT,
            origin="http://ufldl.stanford.edu/housenumbers/",
            canonical=True,
            loader=load_svhn,
        ),
        DataSet(
            name="svhn-gray",
            what="20,853 + 5,169 grey digits cut from SVHN's test photographs; not SVHN",
            input_shape=(3, 32, 32),
            classes=10,
            folder="svhn-gray",
            files=_MAT,
            origin="whoever gave you the set",
            canonical=False,
            loader=load_svhn_gray,
        ),
        DataSet(
            name="cifar10",
            what="CIFAR-10: 50,000 + 10,000 small photographs",
            input_shape=(3, 32, 32),
            classes=10,
            folder="cifar10",
            files=_CIFAR10,
            origin="https://www.cs.toronto.edu/~kriz/cifar.html, in the binary version",
            canonical=True,
            loader=cifar10.load_cifar10,
            pickled=("cifar-10-batches-py", "cifar-10-python.tar.gz"),
        ),
        DataSet(
            name="voc2007",
            what="PASCAL-VOC 2007: 5,011 + 4,952 photographs, labelled by their largest object",
            input_shape=(3, 224, 224),
            classes=20,
            folder="voc2007",
            files=_VOC2007,
            origin="http://host.robots.ox.ac.uk/pascal/VOC/voc2007/",
            canonical=True,
            loader=voc2007.load_voc2007,
        ),
        DataSet(
            name="voc2007-objects",
            what="PASCAL-VOC 2007: 15,662 + 14,976 objects, cut out of the photographs",
            input_shape=(3, 224, 224),
            classes=20,
            folder="voc2007",
            files=_VOC2007,
            origin="http://host.robots.ox.ac.uk/pascal/VOC/voc2007/",
            canonical=True,
            loader=voc2007.load_voc2007_objects,
        ),
        DataSet(
            name="cub200",
            what="CUB-200-2011: 5,994 + 5,794 photographs of birds, or a subset of them",
            input_shape=(3, 224, 224),
            classes=200,
            folder="cub200",
            files=_CUB200,
            origin="https://www.vision.caltech.edu/datasets/cub_200_2011/",
            canonical=True,
            loader=load_cub200,
        ),
        DataSet(
            name="caltech20",
            what="1,000 + 500 photographs of 20 classes of Caltech-101; stands in for VOC 2007",
            input_shape=(3, 224, 224),
            classes=20,
            folder="caltech20",
            files=(("train",), ("test",)),
            origin="whoever gave you the set",
            canonical=False,
            loader=load_caltech20,
        ),
    )
}
