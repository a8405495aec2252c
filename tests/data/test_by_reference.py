"""Data sets named as ``file.py:NAME`` or ``package.module:NAME``."""

import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from datadistill.data import DATA_SETS, load
from datadistill.errors import DataError

CODE = """
import torch
from datadistill.data import DataSet, LabelledData, register

def splits(channels=1):
    images = torch.arange(256, dtype=torch.uint8).reshape(4, channels, 8, 8)
    labels = torch.arange(4) % 2
    return [LabelledData(images, labels, name="mine", split=s) for s in ("train", "test")]

def pairs():
    return (torch.zeros(3, 2), torch.arange(3)), (torch.ones(2, 2), torch.arange(2))

def read(folder, options):
    train, test = splits()
    print(folder.name, options.size)
    return train, test

def nothing():
    pass

def broken():
    raise KeyError("pixels")

MINE = DataSet(
    name="mine", what="Mine", input_shape=(1, 8, 8), classes=2, loader=read, folder="place"
)
REGISTERED = register(
    DataSet(name="own", what="Own", input_shape=(1, 8, 8), classes=2, loader=read)
)
NUMBER = 3
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "my_data.py").write_text(CODE)
    yield tmp_path / "my_data.py"
    sys.modules.pop("my_data", None)
    DATA_SETS.pop("own", None)


@pytest.mark.parametrize("place", ["my_data.py", "my_data", "./my_data.py"])
def test_a_data_set_reads_its_folder(
    place: str, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train, test = load(f"{place}:MINE", tmp_path, size=8)
    assert (train.split, test.split, len(train)) == ("train", "test", 4)
    assert capsys.readouterr().out == "place 8\n"
    assert "mine" not in DATA_SETS


def test_a_file_that_registers_can_be_loaded_again_and_by_name(file: Path) -> None:
    for _ in range(2):
        load(f"{file}:REGISTERED")
    assert len(load("own")[0]) == 4


def test_a_function_gives_both_splits_and_options_apply(file: Path) -> None:
    train, test = load("my_data.py:splits", size=4, channels=3)
    assert train.inputs.shape == test.inputs.shape == (4, 3, 4, 4)
    train, test = load("my_data.py:pairs")
    assert (len(train), len(test), test.split) == (3, 2, "test")


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("NUMBER", "an object of the type int"),
        ("read", "cannot be called: missing a required argument: 'folder'"),
        ("nothing", "returned NoneType, not a pair"),
        ("broken", "failed: KeyError: 'pixels'"),
        ("MIND", "has no 'MIND'. Did you mean 'MINE'?"),
    ],
)
def test_what_is_no_data_set_is_refused(name: str, what: str, file: Path) -> None:
    with pytest.raises(DataError) as caught:
        load(f"my_data.py:{name}")
    assert what in caught.value.what
    assert str(caught.value).count("\n") == 1


@pytest.mark.parametrize("reference", ["none.py:MINE", "no_such_module:MINE"])
def test_missing_code_is_named(reference: str, file: Path) -> None:
    with pytest.raises(DataError, match=reference.partition(":")[0]):
        load(reference)


def test_a_path_that_exists_is_no_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_data:MINE").touch()
    with pytest.raises(DataError, match="not an"):
        load("my_data:MINE")
