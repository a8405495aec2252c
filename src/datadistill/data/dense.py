"""Arrays and tensors that have a number of a usual type for every index, and those that do not."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import DataError

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def check_dense(value: Any) -> None:
    """Raises a DataError for sparse, quantised, masked, complex and float8 arrays and tensors."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise _unusable("a masked array", "Fill the masked values, or leave those examples out.")
    whole = isinstance(value, np.ndarray) and value.dtype.kind == "u" and value.size > 0
    if whole and value.max() > np.iinfo(np.int64).max:
        raise _unusable(f"the number {value.max()}", "Use numbers below 2**63.")
    if not isinstance(value, Tensor):
        return
    if value.layout is not torch.strided or value.is_nested:
        raise _unusable("a sparse tensor", "Convert it: tensor.to_dense().")
    if value.is_meta or value.is_quantized or value.is_complex():
        raise _unusable(
            f"a tensor of type {value.dtype} on {value.device}",
            "Use bytes (uint8, 0 to 255), integers or floating-point numbers.",
        )
    if value.is_floating_point() and value.dtype not in FLOATS:
        raise _unusable(f"a tensor of type {value.dtype}", "Convert it: tensor.float().")


def shared(array: np.ndarray) -> Tensor:
    """A tensor that shares the memory of an array, where torch can."""
    array = np.ascontiguousarray(array)
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def _unusable(what: str, remedy: str) -> DataError:
    return DataError(f"The data have {what}.", remedy)
