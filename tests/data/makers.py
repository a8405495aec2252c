"""Small valid files of every format, made up but laid out exactly as the real ones."""

import bz2
import gzip
import io
import itertools
import struct
import tarfile
import wave
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
from PIL import Image

DIGITS = 10


def pixels(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def idx(array: np.ndarray) -> bytes:
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    return header + array.tobytes()


def make_mnist(folder: Path, *, packed: bool = True, train: int = 20, test: int = 10) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for prefix, count in (("train", train), ("t10k", test)):
        labels = (np.arange(count) % DIGITS).astype(np.uint8)
        for name, array in (
            ("images-idx3", pixels(count, 28, 28, seed=count)),
            ("labels-idx1", labels),
        ):
            content = idx(array)
            path = folder / f"{prefix}-{name}-ubyte{'.gz' if packed else ''}"
            path.write_bytes(gzip.compress(content) if packed else content)
    return folder


def usps_text(count: int, seed: int = 0) -> bytes:
    values = np.random.default_rng(seed).uniform(-1, 1, (count, 256)).round(3)
    lines = [
        f"{i % DIGITS + 1} " + " ".join(f"{k + 1}:{v:g}" for k, v in enumerate(row))
        for i, row in enumerate(values)
    ]
    return ("\n".join(lines) + "\n").encode()


def make_usps(folder: Path, *, packed: bool = True, train: int = 20, test: int = 10) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in (("usps", train), ("usps.t", test)):
        text = usps_text(count)
        path = folder / (f"{name}.bz2" if packed else name)
        path.write_bytes(bz2.compress(text) if packed else text)
    return folder


def svhn_arrays(count: int) -> dict[str, np.ndarray]:
    labels = (np.arange(count) % DIGITS + 1).astype(np.uint8)
    return {"X": pixels(32, 32, 3, count), "y": labels[:, None]}


def make_svhn(folder: Path, *, packed: bool = True) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for split, count in (("train", 20), ("test", 10)):
        arrays = svhn_arrays(count)
        scipy.io.savemat(folder / f"{split}_32x32.mat", arrays, do_compression=packed)
    return folder


def cifar_batch(count: int, seed: int = 0) -> bytes:
    records = pixels(count, 3073, seed=seed)
    records[:, 0] = np.arange(count) % 10
    return records.tobytes()


def cifar_batches(count: int = 10) -> dict[str, bytes]:
    names = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]
    return {name: cifar_batch(count, seed) for seed, name in enumerate(names)}


def make_cifar10(folder: Path, count: int = 10) -> Path:
    place = folder / "cifar-10-batches-bin"
    place.mkdir(parents=True, exist_ok=True)
    for name, content in cifar_batches(count).items():
        (place / name).write_bytes(content)
    return folder


def cifar_tar(batches: dict[str, bytes], prefix: str = "cifar-10-batches-bin/") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in batches.items():
            info = tarfile.TarInfo(prefix + name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def make_cifar10_archive(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    content = gzip.compress(cifar_tar(cifar_batches(2)), compresslevel=1)
    (folder / "cifar-10-binary.tar.gz").write_bytes(content)
    return folder


def make_image(path: Path, size: tuple[int, int] = (40, 30), seed: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels(size[1], size[0], 3, seed=seed)).save(path)
    return path


def make_image_folder(
    folder: Path,
    classes: tuple[str, ...] = ("cat", "dog"),
    train: int = 3,
    test: int = 2,
    *,
    square: bool = False,
) -> Path:
    for split, count in (("train", train), ("test", test)):
        for label, name in enumerate(classes):
            for i in range(count):
                size = (30, 30) if square else (40, 30)
                make_image(folder / split / name / f"{i}.png", size, seed=10 * label + i)
    return folder


def make_cub200(folder: Path, classes: int = 3, each: int = 3) -> Path:
    root = folder / "CUB_200_2011"
    names = [f"{n + 1:03}.Bird_{n}" for n in range(classes)]
    images = [f"{name}/{name}_{i}.jpg" for name in names for i in range(each)]
    for seed, image in enumerate(images):
        make_image(root / "images" / image, seed=seed)
    lists = {
        "classes.txt": names,
        "images.txt": images,
        "image_class_labels.txt": [str(i // each + 1) for i in range(len(images))],
        "train_test_split.txt": [str(int(i % each > 0)) for i in range(len(images))],
    }
    for name, lines in lists.items():
        text = "".join(f"{number} {line}\n" for number, line in enumerate(lines, 1))
        (root / name).write_text(text)
    return folder


def voc_object(name: str, box: tuple[int, int, int, int], difficult: int = 0) -> str:
    sides = zip(("xmin", "ymin", "xmax", "ymax"), box, strict=True)
    inside = "".join(f"\n\t\t\t<{side}>{value}</{side}>" for side, value in sides)
    return (
        f"\n\t<object>\n\t\t<name>{name}</name>\n\t\t<pose>Left</pose>"
        f"\n\t\t<truncated>1</truncated>\n\t\t<difficult>{difficult}</difficult>"
        f"\n\t\t<bndbox>{inside}\n\t\t</bndbox>\n\t</object>"
    )


def voc_annotation(name: str, *objects: str) -> str:
    return (
        f"<annotation>\n\t<folder>VOC2007</folder>\n\t<filename>{name}.jpg</filename>"
        "\n\t<size>\n\t\t<width>40</width>\n\t\t<height>30</height>\n\t\t<depth>3</depth>\n\t</size>"
        f"\n\t<segmented>0</segmented>{''.join(objects)}\n</annotation>\n"
    )


def make_voc2007(folder: Path) -> Path:
    """Four images to train on and two to test; one of them has only difficult objects."""
    whole, corner = (1, 1, 40, 30), (1, 1, 10, 10)
    train = {
        "000001": [voc_object("dog", corner), voc_object("person", whole)],
        "000002": [voc_object("car", whole, difficult=1), voc_object("cat", corner)],
        "000003": [voc_object("train", (5, 6, 20, 25)), voc_object("train", corner)],
        "000004": [voc_object("sofa", whole, difficult=1)],
    }
    test = {
        "000005": [voc_object("tvmonitor", (11, 3, 30, 22))],
        "000006": [voc_object("aeroplane", whole), voc_object("bird", corner)],
    }
    return _write_voc2007(folder, {"trainval": train, "test": test})


def make_voc2007_of(folder: Path, classes: tuple[str, ...]) -> Path:
    """An image of each class, which is in both splits."""
    objects = {f"{n:06}": [voc_object(name, (1, 1, 40, 30))] for n, name in enumerate(classes, 1)}
    return _write_voc2007(folder, {"trainval": objects, "test": objects})


def _write_voc2007(folder: Path, splits: dict[str, dict[str, list[str]]]) -> Path:
    root = folder / "VOCdevkit" / "VOC2007"
    lists = root / "ImageSets" / "Main"
    lists.mkdir(parents=True)
    (root / "Annotations").mkdir()
    images = {name: objects for split in splits.values() for name, objects in split.items()}
    for seed, (name, objects) in enumerate(images.items()):
        make_image(root / "JPEGImages" / f"{name}.jpg", seed=seed)
        (root / "Annotations" / f"{name}.xml").write_text(voc_annotation(name, *objects))
    for split, named in splits.items():
        (lists / f"{split}.txt").write_text("".join(f"{name}\n" for name in named))
    return folder


def npz_arrays() -> dict[str, np.ndarray]:
    return {
        "train_inputs": pixels(12, 3, 8, 8),
        "train_labels": np.arange(12) % 3,
        "test_inputs": pixels(6, 3, 8, 8, seed=1),
        "test_labels": np.arange(6) % 3,
        "class_names": np.array(["one", "two", "three"]),
        "mean": np.array([0.5, 0.5, 0.5]),
        "std": np.array([0.25, 0.25, 0.25]),
    }


def make_npz(path: Path, *, packed: bool = True, **changes: np.ndarray) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {**npz_arrays(), **changes}
    (np.savez_compressed if packed else np.savez)(path, **arrays)
    return path


ADULT_ROW = (
    "{age}, Private, 77516, {education}, 13, Never-married, Adm-clerical, Not-in-family, White, "
    "Male, {gain}, 0, 40, United-States, {label}"
)


def make_adult(folder: Path, *, train: int = 20, test: int = 10) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, count, stop in (("adult.data", train, ""), ("adult.test", test, ".")):
        lines = [
            ADULT_ROW.format(
                age=20 + n,
                education=("Bachelors", "11th", "?")[n % 3],
                gain=2174 * (n % 2),
                label=("<=50K", ">50K")[n % 2] + stop,
            )
            for n in range(count)
        ]
        comment = ["|1x3 Cross validator"] if stop else []
        (folder / name).write_text("\n".join([*comment, *lines, ""]))
    return folder


def make_r8(folder: Path, *, train: int = 24, test: int = 16) -> Path:
    """Texts of a few words, and their vectors in ``glove`` beside the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    classes = ("acq", "crude", "earn", "grain", "interest", "money-fx", "ship", "trade")
    words = [f"word{n}" for n in range(12)]
    for name, count in (("train.tab", train), ("test.tab", test)):
        rows = [f"{classes[n % 8]}\t{words[n % 12]} unknown {words[n % 7]}" for n in range(count)]
        (folder / name).write_text("Category\tText\nd\tstring\nclass\t\n" + "\n".join(rows) + "\n")
    vectors = np.random.default_rng(0).normal(size=(12, 50)).round(4)
    lines = [f"{w} {' '.join(map(str, v))}" for w, v in zip(words, vectors, strict=True)]
    (folder.parent / "glove").mkdir(exist_ok=True)
    text = "\n".join(lines).encode()
    (folder.parent / "glove" / "glove.6B.50d.r8.txt.gz").write_bytes(gzip.compress(text))
    return folder


def wav(seconds: float = 0.3, hertz: float = 440.0, rate: int = 8000) -> bytes:
    """A tone in noise: where a picture is constant, max-pooling has no derivative."""
    time = np.arange(round(seconds * rate)) / rate
    noise = np.random.default_rng(round(hertz)).normal(scale=200.0, size=time.shape)
    content = io.BytesIO()
    with wave.open(content, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((8000 * np.sin(2 * np.pi * hertz * time) + noise).astype("<i2").tobytes())
    return content.getvalue()


def make_spoken_digits(folder: Path, *, each: int = 1) -> Path:
    (folder / "recordings").mkdir(parents=True, exist_ok=True)
    for speaker, digit, n in itertools.product(("george", "yweweler"), range(DIGITS), range(each)):
        path = folder / "recordings" / f"{digit}_{speaker}_{n}.wav"
        path.write_bytes(wav(0.2 + 0.02 * digit, 300.0 + 100 * digit + 5 * n))
    return folder
