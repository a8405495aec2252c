"""Anybody's own data, from Python."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, IterableDataset, TensorDataset

from datadistill.data import LabelledData, as_data
from datadistill.errors import DataError


def test_pairs_of_tensors_and_arrays_will_do() -> None:
    inputs, labels = np.ones((4, 2), np.float32), [0, 1, 0, 1]
    for pair in ((inputs, labels), [torch.tensor(inputs), torch.tensor(labels)]):
        data = as_data(pair, split="mine")
        assert (len(data), data.classes, data.split) == (4, 2, "mine")


def test_any_torch_dataset_will_do() -> None:
    class Stream(IterableDataset[tuple[torch.Tensor, int]]):
        def __iter__(self) -> Iterator[tuple[torch.Tensor, int]]:
            return iter([(torch.zeros(3), 0), (torch.ones(3), 1)])

    table = TensorDataset(torch.zeros(2, 3), torch.tensor([0, 1]))
    for source in (Stream(), table):
        data = as_data(source)
        assert data.input_shape == (3,)
        assert data.labels.tolist() == [0, 1]


def test_labelled_data_are_left_alone() -> None:
    data = LabelledData(torch.zeros(2, 3), torch.tensor([0, 1]))
    assert as_data(data) is data


class Ragged(Dataset[tuple[torch.Tensor, int]]):
    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.zeros(index + 1), 0


class Unpaired(Ragged):
    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.zeros(3)  # pyright: ignore[reportReturnType]


@pytest.mark.parametrize(
    ("source", "what"),
    [
        (Ragged(), "different shapes"),
        (Unpaired(), "not a pair"),
        (TensorDataset(torch.zeros(0, 3), torch.zeros(0)), "is empty"),
        ("a string", "str is not a data set"),
        (None, "NoneType is not a data set"),
    ],
)
def test_other_things_are_refused(source: object, what: str) -> None:
    with pytest.raises(DataError, match=what):
        as_data(source)
