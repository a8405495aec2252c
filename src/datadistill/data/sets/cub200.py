"""CUB-200-2011: photographs of 200 species of birds, 5,994 to train and 5,794 to test."""

from pathlib import Path, PurePosixPath

from ...errors import DataError
from ..data_set import DataSet, register
from ..formats.unpack import damaged, read_text
from ..images.augmentation import ResizedCropFlip
from ..images.listing import ImageSet, Listing
from ..labelled import LabelledData
from ..normalization import Normalization
from ..options import Options
from ..sources import archive

NORMALIZATION = Normalization((0.4785, 0.4993, 0.4022), (0.2321, 0.2277, 0.2665))
LISTS = ("images.txt", "image_class_labels.txt", "train_test_split.txt")
MOST_BYTES = 10**7


def load_cub200(folder: Path, options: Options) -> tuple[LabelledData, LabelledData]:
    """Reads ``CUB_200_2011/``: four lists, and the images listed in ``images.txt``.

    A subset of the images is enough. Training images are augmented by random resized crop and
    flip. Otherwise the shorter side is resized to 256 pixels and the central 224 pixels are
    cropped. (The authors' code stretches the whole image to a square instead.)
    """
    root = folder / "CUB_200_2011"
    names = _read(root / "classes.txt")
    paths, labels, training = (_read(root / name) for name in LISTS)
    classes = {number: label for label, number in enumerate(names)}
    splits: dict[str, tuple[list[Path], list[int]]] = {"1": ([], []), "0": ([], [])}
    for image, path in paths.items():
        split = splits.get(training.get(image, ""))
        label = classes.get(labels.get(image, ""))
        if split is None or label is None or not _inside(path):
            raise DataError(
                f"Image {image} ({path}) of {root / LISTS[0]} has no class in {LISTS[1]}, no split "
                f"in {LISTS[2]}, or is outside the folder.",
                "Use four lists of the same version of CUB-200-2011.",
            )
        split[0].append(root / "images" / path)
        split[1].append(label)
    images = ImageSet("cub200", tuple(names.values()), options, options.pool(), NORMALIZATION)
    augmentation = options.augmentation("cub200", ResizedCropFlip())
    return (
        images.split("train", Listing(*splits["1"]), augmentation),
        images.split("test", Listing(*splits["0"])),
    )


def _read(path: Path) -> dict[str, str]:
    """Reads lines of a number and a value."""
    lines = [line.split() for line in read_text(path, MOST_BYTES).splitlines() if line.strip()]
    pairs = {line[0]: line[-1] for line in lines}
    if not lines or any(len(line) != 2 for line in lines) or len(pairs) < len(lines):
        raise damaged(path, "is not a list of lines with a unique number and a value")
    return pairs


def _inside(path: str) -> bool:
    pure = PurePosixPath(path)
    return not pure.is_absolute() and ".." not in pure.parts


DATA_SET = register(
    DataSet(
        name="cub200",
        what="CUB-200-2011: 5,994 + 5,794 photographs of birds, or a subset of them",
        input_shape=(3, 224, 224),
        classes=200,
        folder="cub200",
        files=tuple((f"CUB_200_2011/{name}",) for name in ("images", "classes.txt", *LISTS)),
        origin="https://www.vision.caltech.edu/datasets/cub_200_2011/",
        canonical=True,
        loader=load_cub200,
        downloads=(
            archive(
                "https://data.caltech.edu/records/65de6-vp158/files/CUB_200_2011.tgz",
                "md5:97eceeb196236b17998738112f37df78",
                1_150_585_339,
                gives=tuple(f"CUB_200_2011/{name}" for name in ("classes.txt", *LISTS)),
                members=r"CUB_200_2011/(\w+\.txt|images/\d{3}\.[\w-]+/[\w-]+\.jpg)",
            ),
        ),
        licence="for non-commercial use",
        order=110,
    )
)
