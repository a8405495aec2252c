"""Files of real data: every format, made up but laid out as the real ones are."""

import functools
import io
import re
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import torch
from tests.data import makers

from datadistill.data import LabelledData, load
from datadistill.data.fetch.npm import Tarball
from datadistill.data.fetch.partial import UnavailableError
from datadistill.data.fetch.unpacking import unpack_archive
from datadistill.data.fingerprint import data_hash
from datadistill.progress import silent

from .kinds import Kind, NotFiniteError, check_finite, either, in_bzip2, in_gzip, in_zip
from .mutation import changed, changed_lines

SIZE = 16
MEMBER = r"root/[\w.]+"
zipped = either(changed, in_gzip)


def _use_set(name: str, path: Path) -> None:
    folder = next(p for p in path.parents if p.name == name.removesuffix("-objects"))
    _use(name, folder.parent)


def _use(source: str | Path, data_dir: Path | None = None) -> None:
    """Loads both splits and uses them: batches, fingerprint."""
    in_files = source in ("caltech20", "cub200", "voc2007", "voc2007-objects")
    size = SIZE if in_files or Path(source).is_dir() else None
    for data in load(source, data_dir, size=size, workers=0, cache_bytes=0):
        _check(data)
        data_hash(data)


def _check(data: LabelledData) -> None:
    inputs, labels = data.batch(slice(len(data)), torch.device("cpu"), torch.float32)
    check_finite(inputs, labels)
    if inputs.shape != (len(data), *data.input_shape):
        raise NotFiniteError
    if not labels.is_floating_point() and not 0 <= int(labels.min()) <= int(labels.max()) < (
        data.classes
    ):
        raise NotFiniteError


def _set(name: str, file: str, make: Any, change: Any = changed) -> Kind:
    """A file of a built-in data set."""

    def made(folder: Path) -> Path:
        place = folder / name.removesuffix("-objects")
        make(place)
        return place / file

    label = f"{name}: {file.rpartition('/')[2]}"
    return Kind(label, made, functools.partial(_use_set, name), change)


def _npz(change: Any, name: str, *, packed: bool) -> Kind:
    def made(folder: Path) -> Path:
        return makers.make_npz(folder / "own.npz", packed=packed)

    return Kind(name, made, _use, change)


def _vectors() -> Kind:
    def made(folder: Path) -> Path:
        makers.make_r8(folder / "r8")
        return folder / "glove" / "glove.6B.50d.r8.txt.gz"

    return Kind("r8: vectors", made, lambda path: _use("r8", path.parents[1]), zipped)


def _recording() -> Kind:
    def made(folder: Path) -> Path:
        makers.make_spoken_digits(folder / "fsdd")
        return folder / "fsdd" / "recordings" / "3_george_0.wav"

    return Kind("recording", made, lambda path: _use("spoken-digits", path.parents[2]))


def _make_csv(folder: Path) -> Path:
    path = folder / "own.csv"
    rows = [f"{n / 7:.3f},{-n},{'abc'[n % 3]},{('train', 'test')[n % 4 == 3]}" for n in range(24)]
    path.write_text("\n".join(["x,z,label,split", *rows, ""]))
    return path


def _image(suffix: str) -> Kind:
    def made(folder: Path) -> Path:
        for split in ("train", "test"):
            makers.make_image(folder / split / "cat" / f"1.{suffix}")
        return folder / "train" / "cat" / f"1.{suffix}"

    return Kind(f"image: {suffix}", made, lambda path: _use(path.parents[2]))


def _make_archive(suffix: str, folder: Path) -> Path:
    path = folder / f"archive.{suffix}"
    mode = {"tar": "w", "tgz": "w:gz"}[suffix]
    with tarfile.open(path, mode) as tar:  # pyright: ignore[reportCallIssue, reportArgumentType]
        for name in ("root/one", "root/two", "other/three"):
            info = tarfile.TarInfo(name)
            info.size = 700
            tar.addfile(info, io.BytesIO(bytes(700)))
    return path


def _use_archive(path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder, path.name)
        shutil.copy(path, archive)
        unpack_archive(archive, re.compile(MEMBER), ("root/two",), silent)
        for file in Path(folder).rglob("*"):
            inside = file.relative_to(folder).as_posix()
            if inside not in (path.name, "root") and not re.fullmatch(MEMBER, inside):
                raise NotFiniteError(inside)


def _use_package(path: Path) -> None:
    try:
        with Tarball("one@1", path) as tarball:
            if len(tarball.read("root/one", 1000)) > 1000:
                raise NotFiniteError
    except UnavailableError:  # fetch reports it, and tries the next source
        return


IDX, VOC, CUB = "train-images-idx3-ubyte", "VOCdevkit/VOC2007", "CUB_200_2011"
small = functools.partial(makers.make_mnist, packed=False, train=3, test=2)
packed = functools.partial(makers.make_mnist, packed=True, train=3, test=2)
text = either(changed, changed_lines, changed_lines)

KINDS = (
    _set("mnist", IDX, small),
    _set("mnist", "t10k-labels-idx1-ubyte", small),
    _set("fashion-mnist", f"{IDX}.gz", packed, zipped),
    _set("usps", "usps.t.bz2", makers.make_usps, either(changed, in_bzip2)),
    _set("usps", "usps", functools.partial(makers.make_usps, packed=False), text),
    _set("svhn", "test_32x32.mat", makers.make_svhn),
    _set("svhn-gray", "test_32x32.mat", functools.partial(makers.make_svhn, packed=False)),
    _set("cifar10", "cifar-10-batches-bin/data_batch_3.bin", makers.make_cifar10),
    _set("cifar10", "cifar-10-binary.tar.gz", makers.make_cifar10_archive, zipped),
    _set("voc2007", f"{VOC}/ImageSets/Main/trainval.txt", makers.make_voc2007, text),
    _set("voc2007-objects", f"{VOC}/Annotations/000003.xml", makers.make_voc2007, text),
    _set("cub200", f"{CUB}/images.txt", makers.make_cub200, text),
    _set("cub200", f"{CUB}/image_class_labels.txt", makers.make_cub200, text),
    _set("adult", "adult.data", makers.make_adult, text),
    _set("adult", "adult.test", makers.make_adult, text),
    _set("r8", "train.tab", makers.make_r8, text),
    _vectors(),
    _recording(),
    _set("caltech20", "train/cat/0.png", makers.make_image_folder),
    _npz(changed, "npz, packed", packed=True),
    _npz(either(changed, in_zip, in_zip), "npz", packed=False),
    *(_image(suffix) for suffix in ("bmp", "gif", "jpg", "png", "ppm", "tif", "webp")),
    Kind("csv", _make_csv, _use, text),
    Kind("tar", functools.partial(_make_archive, "tar"), _use_archive),
    Kind("tgz", functools.partial(_make_archive, "tgz"), _use_archive, zipped),
    Kind("package", functools.partial(_make_archive, "tgz"), _use_package, zipped),
)
