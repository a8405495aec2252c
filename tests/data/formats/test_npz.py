"""Numpy arrays in .npz files."""

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from datadistill.data import Normalization, PadCropFlip, load
from datadistill.errors import ConfigError, DataError

from ..makers import make_npz, npz_arrays, pixels


@pytest.mark.parametrize("packed", [True, False])
def test_arrays_are_read_as_documented(packed: bool, tmp_path: Path) -> None:
    train, test = load(make_npz(tmp_path / "own.npz", packed=packed))
    arrays = npz_arrays()
    assert isinstance(train.inputs, torch.Tensor)
    assert np.array_equal(train.inputs.numpy(), arrays["train_inputs"])
    assert test.labels.tolist() == arrays["test_labels"].tolist()
    assert train.class_names == ("one", "two", "three")
    assert train.normalization == Normalization((0.5,) * 3, (0.25,) * 3)
    assert (train.name, train.split, test.split) == ("own", "train", "test")
    assert train.augmentation is None


def save(path: Path, **arrays: np.ndarray | None) -> Path:
    merged: dict[str, Any] = {**npz_arrays(), **arrays}
    np.savez(path, **{name: array for name, array in merged.items() if array is not None})
    return path


def test_without_mean_and_std_those_of_the_training_images_are_used(tmp_path: Path) -> None:
    train, _ = load(save(tmp_path / "own.npz", mean=None, std=None, class_names=None))
    assert train.class_names is None
    assert train.normalization is not None
    images = npz_arrays()["train_inputs"] / 255
    assert train.normalization.mean == pytest.approx(images.mean((0, 2, 3)), abs=1e-4)
    assert train.normalization.std == pytest.approx(images.std((0, 2, 3)), abs=1e-4)


def test_floats_are_taken_as_they_are(tmp_path: Path) -> None:
    inputs = {f"{split}_inputs": np.ones((n, 5)) for split, n in (("train", 12), ("test", 6))}
    labels = {f"{split}_labels": np.ones(n) / 3 for split, n in (("train", 12), ("test", 6))}
    path = save(tmp_path / "own.npz", **inputs, **labels, mean=None, std=None, class_names=None)
    train, _ = load(path)
    assert train.normalization is None
    batch, targets = train.batch(slice(2), torch.device("cpu"), torch.float64)
    assert batch.tolist() == [[1.0] * 5] * 2
    assert targets.tolist() == [1 / 3] * 2


def test_floats_without_channels_are_grey_images_only_if_something_says_so(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(12, 4, 4))
    inputs = {"train_inputs": values, "test_inputs": values[:6]}
    path = save(tmp_path / "plain.npz", **inputs, mean=None, std=None)
    assert load(path)[0].input_shape == (4, 4)
    for split in load(path, channels=1):
        assert split.input_shape == (1, 4, 4)
        assert np.array_equal(np.asarray(split.inputs)[:, 0], values[: len(split)])
    path = save(tmp_path / "mean.npz", **inputs, mean=np.array(0.5), std=np.array([2.0]))
    train, _ = load(path)
    assert train.normalization == Normalization((0.5,), (2.0,))
    batch, _ = train.batch(slice(12), torch.device("cpu"), torch.float64)
    assert np.allclose(batch[:, 0], (values - 0.5) / 2)


def test_any_byte_order_and_memory_layout_will_do(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(12, 3, 4, 4))
    path = save(
        tmp_path / "own.npz",
        train_inputs=np.asfortranarray(values.astype(">f8")),
        test_inputs=values[:6],
        train_labels=(np.arange(12) % 3).astype(">u2"),
    )
    train, test = load(path)
    assert isinstance(train.inputs, torch.Tensor)
    assert isinstance(test.inputs, torch.Tensor)
    assert torch.equal(train.inputs[:6], test.inputs)
    assert train.labels.tolist() == [0, 1, 2] * 4


def test_grey_images_need_no_axis_of_channels(tmp_path: Path) -> None:
    path = save(
        tmp_path / "own.npz",
        train_inputs=pixels(12, 8, 8),
        test_inputs=pixels(6, 8, 8),
        mean=None,
        std=None,
    )
    train, _ = load(path, size=10)
    assert train.input_shape == (1, 10, 10)


def test_channels_may_come_last(tmp_path: Path) -> None:
    inputs = {"train_inputs": pixels(12, 8, 8, 3), "test_inputs": pixels(6, 8, 8, 3)}
    train, _ = load(save(tmp_path / "own.npz", **inputs))
    assert train.input_shape == (3, 8, 8)
    assert np.array_equal(np.asarray(train.inputs).transpose(0, 2, 3, 1), inputs["train_inputs"])


@pytest.mark.parametrize("given", [True, False])
def test_labels_may_be_names_of_classes(given: bool, tmp_path: Path) -> None:
    names = np.array(["one", "two", "three"])
    labels = {"train_labels": names[np.arange(12) % 3], "test_labels": names[[2, 1, 2, 1, 1, 1]]}
    path = save(tmp_path / "own.npz", **labels, class_names=names if given else None)
    train, test = load(path)
    assert train.class_names == test.class_names
    assert train.class_names == (("one", "two", "three") if given else ("one", "three", "two"))
    for split, data in (("train", train), ("test", test)):
        assert train.class_names is not None
        said = [train.class_names[label] for label in data.labels.tolist()]
        assert said == labels[f"{split}_labels"].tolist()


def test_images_are_augmented_if_asked(tmp_path: Path) -> None:
    train, test = load(make_npz(tmp_path / "own.npz"), augment=True)
    assert isinstance(train.augmentation, PadCropFlip)
    assert test.augmentation is None
    vectors = save(
        tmp_path / "vectors.npz",
        train_inputs=np.zeros((12, 5)),
        test_inputs=np.zeros((6, 5)),
        mean=None,
        std=None,
    )
    with pytest.raises(ConfigError, match="no augmentation for vectors"):
        load(vectors, augment=True)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"test_labels": None}, "no array called test_labels"),
        ({"train_inputs": np.array([{}], dtype=object)}, "not numeric"),
        ({"train_inputs": pixels(11, 3, 8, 8)}, "11 inputs but 12 labels"),
        ({"train_inputs": pixels(12, 8, 8, 4)}, "looks like RGBA"),
        ({"train_inputs": np.arange(12)}, "int64"),
        ({"test_inputs": pixels(6, 3, 9, 9)}, "but test inputs of shape"),
        ({"train_labels": np.arange(12) - 1}, "labels from -1"),
        ({"train_labels": np.arange(12)}, "labels from 0 to 11"),
        (
            {"train_labels": np.array(list("abcabcabcabc"))},
            "label 'a', which is not one of one, two",
        ),
        ({"train_labels": np.zeros((12, 2, 2), int)}, "vector of integers"),
        ({"train_labels": np.full(12, np.nan)}, "NaN"),
        ({"train_labels": np.full(12, 2**63, np.uint64)}, "labels from"),
        ({"mean": None}, "only one of mean and std"),
        ({"mean": np.zeros(2)}, "each of 3 channels"),
        ({"std": np.zeros(3)}, "std that is not positive"),
        ({"std": np.array([0.25, 1e-320, 0.25])}, "std that no pixels can have"),
        ({"mean": np.array([0.5, 1e300, 0.5])}, "mean or std that no pixels can have"),
        ({"mean": np.full(3, np.inf)}, "not finite"),
        ({"train_inputs": pixels(0, 3, 8, 8), "train_labels": np.arange(0)}, "is empty"),
    ],
)
def test_unfit_arrays_are_refused(
    changes: dict[str, np.ndarray | None], what: str, tmp_path: Path
) -> None:
    path = save(tmp_path / "own.npz", **changes)
    with pytest.raises(DataError, match=what):
        load(path)


def test_pickles_are_never_run(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return exec, (f"open({str(tmp_path / 'sprung')!r}, 'w')",)

    with pytest.raises(DataError, match="not numeric"):
        load(save(tmp_path / "own.npz", train_inputs=np.array([Trap()], dtype=object)))
    assert not (tmp_path / "sprung").exists()


def replace_member(
    path: Path, name: str, content: bytes, method: int = zipfile.ZIP_DEFLATED
) -> None:
    with zipfile.ZipFile(make_npz(path)) as file:
        members = {info.filename: file.read(info) for info in file.infolist()}
    with zipfile.ZipFile(path, "w", method) as file:
        for member, old in members.items():
            file.writestr(member, content if member == name else old)


def npy(shape: tuple[int, ...], content: bytes) -> bytes:
    buffer = io.BytesIO()
    header = {"descr": "|u1", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, header)
    return buffer.getvalue() + content


@pytest.mark.parametrize("shape", [(2**40,), (2**32, 2**32), (-1, 12), (13,)])
def test_headers_that_promise_more_than_there_is_are_refused(
    shape: tuple[int, ...], tmp_path: Path
) -> None:
    replace_member(tmp_path / "own.npz", "train_labels.npy", npy(shape, bytes(12)))
    with pytest.raises(DataError, match=r"should have .* bytes"):
        load(tmp_path / "own.npz")


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    size = 10**8
    replace_member(tmp_path / "own.npz", "train_inputs.npy", npy((size,), bytes(size)))
    with pytest.raises(DataError, match="would expand"):
        load(tmp_path / "own.npz")


def test_other_ways_of_packing_are_refused(tmp_path: Path) -> None:
    replace_member(tmp_path / "own.npz", "mean.npy", npy((3,), bytes(3)), zipfile.ZIP_LZMA)
    with pytest.raises(DataError, match="a method that NumPy does not use"):
        load(tmp_path / "own.npz")


def test_members_that_climb_out_are_never_looked_at(tmp_path: Path) -> None:
    path = make_npz(tmp_path / "inside" / "own.npz")
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("../outside.npy", b"not an array")
    assert len(load(path)[0]) == 12
    assert [found.name for found in tmp_path.rglob("*.np*")] == ["own.npz"]
