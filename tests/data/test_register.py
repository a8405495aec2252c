"""Data sets that are added; that one file in the package is enough shows tests/test_one_file.py."""

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import datadistill as dd
from datadistill.data import DATA_SETS, DataSet, LabelledData, Options, catalogue, load, register
from datadistill.errors import DataError

PACKAGE = Path(dd.__file__).parent


@pytest.fixture(autouse=True)
def restored() -> Generator[None]:
    before = dict(DATA_SETS)
    yield
    DATA_SETS.clear()
    DATA_SETS.update(before)


def read(folder: Path, options: Options) -> tuple[LabelledData, LabelledData]:
    numbers = torch.tensor([float(line) for line in (folder / "numbers.txt").read_text().split()])
    inputs, labels = numbers[:, None], (numbers > 0).long()
    return tuple(LabelledData(inputs, labels, name="mine", split=s) for s in ("train", "test"))  # pyright: ignore[reportReturnType]


MINE = DataSet(
    name="mine",
    what="numbers",
    input_shape=(1,),
    classes=2,
    loader=read,
    folder="mine",
    files=(("numbers.txt",),),
)


def test_a_registered_data_set_is_loaded_by_its_name(tmp_path: Path) -> None:
    assert register(MINE) is MINE
    assert catalogue()[-1] is MINE
    with pytest.raises(DataError, match=r"mine was not found .* Missing: numbers\.txt") as caught:
        load("mine", tmp_path)
    assert "fetch" not in caught.value.remedy
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "numbers.txt").write_text("1 -2 3")
    train, test = load("mine", tmp_path)
    assert train.labels.tolist() == test.labels.tolist() == [1, 0, 1]


def test_a_place_in_the_list_can_be_chosen() -> None:
    register(replace(MINE, order=25))
    assert list(DATA_SETS)[:4] == ["digits", "mnist", "mine", "fashion-mnist"]


def test_registering_again_replaces() -> None:
    register(MINE)
    again = register(replace(MINE, what="other numbers"))
    assert DATA_SETS["mine"] is again


def test_the_name_of_another_data_set_is_refused() -> None:
    before = DATA_SETS["mnist"]
    with pytest.raises(DataError, match="already a data set called 'mnist'"):
        register(replace(MINE, name="mnist"))
    assert DATA_SETS["mnist"] is before
