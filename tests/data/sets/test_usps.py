"""USPS's text files."""

import bz2
from pathlib import Path

import pytest
import torch

from datadistill.data import load
from datadistill.errors import DataError

from ..makers import make_usps, usps_text


def test_values_become_bytes_and_labels_digits(tmp_path: Path) -> None:
    folder = make_usps(tmp_path / "usps", packed=False)
    row = " ".join(f"{i + 1}:{v}" for i, v in enumerate([-1, 1, 0.2, -0.2] * 64))
    (folder / "usps.t").write_text(f"10 {row}\n1 1:1\n")
    _, test = load("usps", tmp_path, size=16)
    assert isinstance(test.inputs, torch.Tensor)
    assert test.inputs[0].flatten()[:4].tolist() == [0, 255, 153, 102]
    assert test.inputs[1].flatten()[:3].tolist() == [255, 128, 128]  # what is left out is 0
    assert test.labels.tolist() == [9, 0]


def test_images_are_28_by_28(tmp_path: Path) -> None:
    make_usps(tmp_path / "usps")
    train, test = load("usps", tmp_path)
    assert train.input_shape == test.input_shape == (1, 28, 28)
    assert (len(train), len(test)) == (20, 10)
    assert train.normalization is not None
    assert (train.normalization.mean, train.normalization.std) == ((0.1597,), (0.2573,))


def test_digits_have_a_margin_of_3_pixels_at_28_by_28_only(tmp_path: Path) -> None:
    make_usps(tmp_path / "usps")
    framed, plain, large = (load("usps", tmp_path, size=size)[0].inputs for size in (28, 22, 32))
    assert isinstance(framed, torch.Tensor)
    assert isinstance(plain, torch.Tensor)
    assert isinstance(large, torch.Tensor)
    assert torch.equal(framed[..., 3:-3, 3:-3], plain)
    assert int(framed.sum()) == int(plain.sum())  # the margin is black
    assert large[..., 0, :].any()


def test_usps_mixed_is_all_of_usps_divided_at_random(tmp_path: Path) -> None:
    make_usps(tmp_path / "usps")
    own = [part.inputs for part in load("usps", tmp_path)]
    train, test = load("usps-mixed", tmp_path)
    again, _ = load("usps-mixed", tmp_path)
    assert (len(train), len(test)) == (24, 6)
    assert (train.name, train.split, test.split) == ("usps-mixed", "train", "test")
    assert torch.equal(train.labels, again.labels)

    def rows(*parts: object) -> list[bytes]:
        return sorted(
            row.numpy().tobytes() for p in parts if isinstance(p, torch.Tensor) for row in p
        )

    assert rows(train.inputs, test.inputs) == rows(*own)
    assert not set(rows(test.inputs)) <= set(rows(own[1])), "not USPS's own test images alone"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (b"", "has values outside|not 256 values"),
        (b"1 1:2\n", "outside"),
        (b"1 1:nan\n", "NaN"),
        (b"11 1:1\n", "labels"),
        (b"1.5 1:1\n", "labels"),
        (b"1 257:1\n", "svmlight"),
        (b"1 0:1\n", "svmlight"),
        (b"1 99999999999999999999:1\n", "svmlight"),
        (b"1 2:1 1:1\n", "svmlight"),
        (b"one 1:1\n", "svmlight"),
        (b"<html>not found</html>\n", "svmlight"),
    ],
)
def test_other_text_is_refused(text: bytes, what: str, tmp_path: Path) -> None:
    folder = make_usps(tmp_path / "usps")
    (folder / "usps.t.bz2").write_bytes(bz2.compress(text))
    with pytest.raises(DataError, match=what) as caught:
        load("usps", tmp_path)
    assert "usps.t.bz2" in caught.value.what


def test_a_truncated_file_is_named(tmp_path: Path) -> None:
    folder = make_usps(tmp_path / "usps")
    (folder / "usps.bz2").write_bytes(bz2.compress(usps_text(20))[:-20])
    with pytest.raises(DataError, match=r"usps\.bz2 cannot be read: Compressed file ended"):
        load("usps", tmp_path)


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    folder = make_usps(tmp_path / "usps")
    (folder / "usps.bz2").write_bytes(bz2.compress(b" " * 10**6) * 1000)
    with pytest.raises(DataError, match="the most possible"):
        load("usps", tmp_path)
