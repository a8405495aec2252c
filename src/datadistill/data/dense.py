"""Arrays and tensors as users have them, turned into plain tensors where the meaning is clear."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import DataError

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
LARGEST = torch.iinfo(torch.int64).max


def dense(value: Any) -> Tensor:
    """Returns a tensor of an array, a tensor, or what NumPy makes one of.

    Negative strides and any byte order are taken. Sparse, quantised and masked arrays, float8,
    complex numbers and objects raise a DataError.
    """
    if isinstance(value, Tensor):
        check_dense(value.detach())
        return value.detach()
    if hasattr(value, "toarray") and not isinstance(value, np.ndarray):  # a SciPy matrix
        raise _unusable("a sparse matrix", "Make it dense: matrix.toarray().")
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise _unusable("a masked array", "Fill the masked values, or leave those examples out.")
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:  # rows of different lengths
        raise _unusable(f"no array: {error}") from error
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise _unusable(f"an array of type {array.dtype}")
    if array.dtype.kind == "u" and array.size and array.max() > LARGEST:
        raise _unusable(f"an array with the number {array.max()}")
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if not array.flags.writeable or any(stride < 0 for stride in array.strides):
        array = array.copy()  # torch has neither
    return torch.as_tensor(array)


def check_dense(tensor: Tensor) -> None:
    """Raises an error unless a tensor has a number of a usual type for every index."""
    if tensor.layout is not torch.strided or tensor.is_nested:
        raise _unusable("a sparse tensor", "Make it dense: tensor.to_dense().")
    if tensor.is_meta or tensor.is_quantized or tensor.is_complex():
        raise _unusable(f"a tensor of type {tensor.dtype} on {tensor.device}")
    if tensor.is_floating_point() and tensor.dtype not in FLOATS:
        raise _unusable(f"a tensor of type {tensor.dtype}", "Convert it: tensor.float().")


def _unusable(
    what: str, remedy: str = "Use bytes (uint8, 0 to 255), integers or floating-point numbers."
) -> DataError:
    return DataError(f"The data have {what}.", remedy)
