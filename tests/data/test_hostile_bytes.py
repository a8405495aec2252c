"""Whatever happens to the bytes of a file: valid data, or a DataError that names it."""

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from datadistill.data import LabelledData, load
from datadistill.errors import DataError

from . import makers

Mutation = tuple[str, float, bytes]

MUTATIONS: st.SearchStrategy[list[Mutation]] = st.lists(
    st.tuples(
        st.sampled_from(["flip", "cut", "insert", "replace", "remove", "repeat"]),
        st.one_of(st.floats(0, 1), st.floats(0, 0.05)),  # headers deserve more attention
        st.binary(min_size=1, max_size=8),
    ),
    min_size=1,
    max_size=4,
)


def mutated(content: bytes, mutations: list[Mutation]) -> bytes:
    for kind, where, extra in mutations:
        place = int(where * len(content))
        before, after = content[:place], content[place:]
        match kind:
            case "flip" if after:
                content = before + bytes([after[0] ^ (extra[0] or 1)]) + after[1:]
            case "cut":
                content = before
            case "insert":
                content = before + extra + after
            case "replace":
                content = before + extra + after[len(extra) :]
            case "remove":
                content = before + after[extra[0] :]
            case _:
                content = before + after[: extra[0]] + after
    return content


def as_it_is(content: bytes) -> bytes:
    return content


# Name of the data set, who makes it, one of its files, and how that file is packed if bytes are
# to be changed inside.
CASES: dict[str, tuple[str, Callable[[Path], Path], str, Callable[[bytes], bytes]]] = {
    "idx images": (
        "mnist",
        lambda folder: makers.make_mnist(folder, packed=False, train=3, test=2),
        "mnist/train-images-idx3-ubyte",
        as_it_is,
    ),
    "idx labels": (
        "mnist",
        lambda folder: makers.make_mnist(folder, packed=False),
        "mnist/t10k-labels-idx1-ubyte",
        as_it_is,
    ),
    "gzip": (
        "fashion-mnist",
        lambda folder: makers.make_mnist(folder, train=3, test=2),
        "fashion-mnist/train-images-idx3-ubyte.gz",
        as_it_is,
    ),
    "idx in gzip": (
        "mnist",
        lambda folder: makers.make_mnist(folder, packed=False, train=3, test=2),
        "mnist/t10k-images-idx3-ubyte",
        gzip.compress,
    ),
    "bzip2": ("usps", makers.make_usps, "usps/usps.t.bz2", as_it_is),
    "libsvm": (
        "usps",
        lambda folder: makers.make_usps(folder, packed=False),
        "usps/usps.t",
        bz2.compress,
    ),
    "packed mat": ("svhn", makers.make_svhn, "svhn/test_32x32.mat", as_it_is),
    "plain mat": (
        "svhn-gray",
        lambda folder: makers.make_svhn(folder, packed=False),
        "svhn-gray/test_32x32.mat",
        as_it_is,
    ),
    "CIFAR-10 batch": (
        "cifar10",
        makers.make_cifar10,
        "cifar10/cifar-10-batches-bin/data_batch_3.bin",
        as_it_is,
    ),
    "CIFAR-10 archive": (
        "cifar10",
        makers.make_cifar10_archive,
        "cifar10/cifar-10-binary.tar.gz",
        as_it_is,
    ),
    "VOC list": (
        "voc2007",
        makers.make_voc2007,
        "voc2007/VOCdevkit/VOC2007/ImageSets/Main/trainval.txt",
        as_it_is,
    ),
    "VOC annotation": (
        "voc2007-objects",
        makers.make_voc2007,
        "voc2007/VOCdevkit/VOC2007/Annotations/000003.xml",
        as_it_is,
    ),
    "CUB images": (
        "cub200",
        makers.make_cub200,
        "cub200/CUB_200_2011/images.txt",
        as_it_is,
    ),
    "CUB labels": (
        "cub200",
        makers.make_cub200,
        "cub200/CUB_200_2011/image_class_labels.txt",
        as_it_is,
    ),
    "PNG": ("caltech20", makers.make_image_folder, "caltech20/train/cat/0.png", as_it_is),
    "JPEG": (
        "cub200",
        makers.make_cub200,
        "cub200/CUB_200_2011/images/001.Bird_0/001.Bird_0_0.jpg",
        as_it_is,
    ),
}


def check_sound(data: LabelledData) -> None:
    inputs, labels = data.batch(slice(len(data)), torch.device("cpu"), torch.float32)
    assert inputs.shape == (len(data), *data.input_shape)
    assert torch.isfinite(inputs).all()
    assert labels.shape == (len(data),)
    assert 0 <= int(labels.min()) <= int(labels.max()) < data.classes


def refusal(source: str | Path, data_dir: Path | None = None) -> DataError | None:
    """Loads and reads everything; whatever is raised is a DataError."""
    size = 16 if source in IN_IMAGE_FILES or Path(source).is_dir() else None
    try:
        for data in load(source, data_dir, size=size, workers=0, cache_bytes=0):
            check_sound(data)
    except DataError as error:
        return error
    return None


IN_IMAGE_FILES = ("caltech20", "cub200", "voc2007", "voc2007-objects")


@pytest.mark.parametrize("case", CASES)
def test_damaged_files_of_a_data_set_never_crash_it(
    case: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    name, make, file, pack = CASES[case]
    data_dir = tmp_path_factory.mktemp("hostile")
    make(data_dir / file.split("/")[0])
    path = data_dir / file
    sound = path.read_bytes()

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(MUTATIONS)
    def check(mutations: list[Mutation]) -> None:
        path.write_bytes(pack(mutated(sound, mutations)))
        if error := refusal(name, data_dir):
            # A list may be sound in itself and name a file that is not there.
            assert str(data_dir) in error.what or "split" in error.what
            assert error.remedy

    check()


@pytest.mark.parametrize("packed", [True, False])
def test_damaged_npz_files_never_crash(
    packed: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = makers.make_npz(tmp_path_factory.mktemp("hostile") / "own.npz", packed=packed)
    sound = path.read_bytes()

    @settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(MUTATIONS)
    def check(mutations: list[Mutation]) -> None:
        path.write_bytes(mutated(sound, mutations))
        if error := refusal(path):
            assert str(path) in error.what or "split" in error.what

    check()


@pytest.mark.parametrize("suffix", ["bmp", "gif", "jpg", "png", "ppm", "tif", "webp"])
def test_damaged_images_never_crash(suffix: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("hostile")
    for split in ("train", "test"):
        makers.make_image(folder / split / "cat" / f"1.{suffix}")
    path = folder / "train" / "cat" / f"1.{suffix}"
    sound = path.read_bytes()

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(MUTATIONS)
    def check(mutations: list[Mutation]) -> None:
        path.write_bytes(mutated(sound, mutations))
        if error := refusal(folder):
            assert str(path) in error.what

    check()


def test_a_long_cell_does_not_make_all_cells_long(tmp_path: Path) -> None:
    rows = ["x,label", "1" * 2000 + ",a", *["1,b"] * 10]
    (tmp_path / "own.csv").write_text("\n".join(rows))
    with pytest.raises(DataError, match="more than 1,000 characters in row 2"):
        load(tmp_path / "own.csv")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(b"1\n" * 20_000, "more than 10,000 lines", id="lines that become rows"),
        pytest.param(b"1" + b" 1:1" * 100_000, "a line that is longer", id="a line without end"),
        pytest.param(b"1" * 100_000, "a line that is longer", id="a number without end"),
        pytest.param(b"#" * 45_000_000, "the most possible", id="too many bytes"),
    ],
)
def test_endless_lines_are_refused_before_they_are_parsed(
    tmp_path: Path, text: bytes, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sklearn.datasets

    makers.make_usps(tmp_path / "usps", packed=False)
    (tmp_path / "usps" / "usps").write_bytes(text)
    monkeypatch.setattr(sklearn.datasets, "load_svmlight_file", None)
    with pytest.raises(DataError, match=message):
        load("usps", tmp_path)
