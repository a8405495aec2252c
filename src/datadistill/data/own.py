"""Your own data: pairs of tensors, and torch data sets."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

from ..errors import DataError
from .dense import dense
from .labelled import LabelledData


def as_data(source: Any, split: str = "train") -> LabelledData:
    """Converts real data from the forms that users have them in.

    Args:
        source: :class:`LabelledData`, a pair (inputs, labels) of tensors or arrays, or any
            torch ``Dataset`` of (input, label) pairs. Floats are assumed to be normalised.
        split: The name of the split, for data without one.
    """
    if isinstance(source, LabelledData):
        return source
    if isinstance(source, tuple | list) and len(source) == 2:
        inputs, labels = source
        return LabelledData(_tensor(inputs), _labels(labels), split=split)
    if isinstance(source, Dataset):
        return _from_items(source, split)  # pyright: ignore[reportArgumentType]
    raise DataError(
        f"{type(source).__name__} is not a data set.",
        "Pass a pair (inputs, labels) of tensors, or a torch Dataset of (input, label) pairs.",
    )


def _from_items(items: Iterable[tuple[Any, Any]], split: str) -> LabelledData:
    inputs: list[Tensor] = []
    labels: list[Tensor] = []
    # Data sets with only __getitem__ and __len__ do not end a plain for loop.
    length = len(items) if hasattr(items, "__len__") else None  # pyright: ignore[reportArgumentType]
    try:
        for item in items if length is None else (items[i] for i in range(length)):  # pyright: ignore[reportIndexIssue]
            pixels, label = item
            inputs.append(_tensor(pixels))
            labels.append(_labels(label))
    except (TypeError, ValueError) as error:
        raise DataError(
            f"Item {len(inputs)} of the data set is not a pair (input, label): {error}",
            "Return tensors or arrays; images need a transform such as ToTensor().",
        ) from error
    shapes = {tuple(pixels.shape) for pixels in inputs}
    if len(shapes) > 1:
        raise DataError(
            f"The inputs have different shapes: {', '.join(map(str, sorted(shapes)[:3]))}.",
            "Resize or crop them to one shape.",
        )
    if not inputs:
        return LabelledData(torch.empty(0, 1), torch.empty(0), split=split)
    return LabelledData(torch.stack(inputs), torch.stack(labels), split=split)


def _tensor(value: Any) -> Tensor:
    tensor = dense(value)
    whole = not tensor.is_floating_point() and tensor.dtype != torch.uint8
    return tensor.long() if whole else tensor


def _labels(value: Any) -> Tensor:
    tensor = _tensor(value)
    return tensor if tensor.is_floating_point() else tensor.long()  # bytes are not indices
