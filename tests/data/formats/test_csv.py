"""Tables in .csv files."""

from pathlib import Path

import pytest
import torch

from datadistill.data import load
from datadistill.errors import ConfigError, DataError, DataWarning

ROWS = [(n / 10, -n / 20, "cat" if n % 2 else "dog") for n in range(20)]


def write(path: Path, *lines: object) -> Path:
    path.write_text("\n".join(map(str, lines)) + "\n", "utf-8")
    return path


def table(path: Path, names: str = "a,b,label") -> Path:
    return write(path, names, *(",".join(map(str, row)) for row in ROWS))


def test_columns_are_inputs_and_a_fifth_of_every_class_is_for_the_test(tmp_path: Path) -> None:
    train, test = load(table(tmp_path / "pets.csv"))
    assert (train.name, train.split, test.split) == ("pets", "train", "test")
    assert train.class_names == test.class_names == ("cat", "dog")
    assert train.labels.bincount().tolist() == [8, 8]
    assert test.labels.bincount().tolist() == [2, 2]
    rows = {(*row,) for data in (train, test) for row in data.tensors(torch.float64)[0].tolist()}
    assert rows == {(a, b) for a, b, _ in ROWS}
    other = load(table(tmp_path / "pets.csv"), seed=1)[1]
    assert not torch.equal(other.tensors()[0], test.tensors()[0])


@pytest.mark.parametrize("name", ["label", "Target", " class ", "y"])
def test_the_labels_are_found_by_name_anywhere(name: str, tmp_path: Path) -> None:
    lines = (f"{label},{a},{b}" for a, b, label in ROWS)
    train, _ = load(write(tmp_path / "pets.csv", f"{name},a,b", *lines))
    assert train.input_shape == (2,)
    assert train.class_names == ("cat", "dog")


def test_a_column_says_which_rows_are_for_the_test(tmp_path: Path) -> None:
    lines = ["1,0,train", "2,1,train", "3,0,Test", "4,1,train"]
    train, test = load(write(tmp_path / "own.csv", "x,label,split", *lines))
    assert train.tensors()[0].flatten().tolist() == [1, 2, 4]
    assert test.tensors()[0].flatten().tolist() == [3]
    assert train.labels.tolist() == [0, 1, 1]


def test_decimal_labels_are_for_regression(tmp_path: Path) -> None:
    path = write(tmp_path / "own.csv", "x,y", *(f"{n},{n / 4}" for n in range(12)))
    train, _ = load(path)
    assert train.labels.dtype == torch.float64


def test_unscaled_columns_are_warned_of(tmp_path: Path) -> None:
    path = write(tmp_path / "own.csv", "x,y", *(f"{100 * n},{n % 2}" for n in range(12)))
    with pytest.warns(DataWarning, match=r"own\.csv has columns with standard deviations"):
        load(path)


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        ([""], "no examples"),
        (["a,label"], "no examples"),
        (["a,b", "1,2"], "no columns for labels among a, b"),
        (["1,2,0", "3,4,1"], "no columns for labels among 1, 2, 0"),
        (["label,y", "1,2"], "2 columns for labels"),
        (["label", "1"], "no columns of inputs"),
        (["a,label", "1,0", "2"], "1 of 2 cells in row 3"),
        (["a,label", "1,0", "x,1"], "'x' in row 3 of the column 'a'"),
        (["a,label", "1,0", ",1"], "'' in row 3 of the column 'a'"),
        (["a,label", "nan,0", "1,1"], "NaN or infinite"),
        (["a,label", "1,0", "2,"], "no label in row 3"),
        (["a,label,split", "1,0,train", "2,0,dev"], "'dev' in the column 'split'"),
        (["a,label,split", "1,0,train", "2,0,train"], "no rows for test"),
    ],
)
def test_unfit_tables_are_refused(lines: list[str], what: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=what):
        load(write(tmp_path / "own.csv", *lines))


def test_other_bytes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    for content in (b"a,label\n\xff\xfe,1\n", b'a,label\n"1,0\n'):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"own\.csv"):
            load(path)


def test_columns_are_not_images(tmp_path: Path) -> None:
    path = table(tmp_path / "own.csv")
    with pytest.raises(DataError, match="not images"):
        load(path, size=8)
    with pytest.raises(ConfigError, match="no augmentation"):
        load(path, augment=True)
