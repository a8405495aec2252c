"""What is made of tensors when an artefact is read: inputs of their parameters, a whitening."""

from collections.abc import Mapping

import torch
from torch import Tensor

from ..core.parametrisation import Parametrisation
from ..data.whitening import LARGEST, Whitening
from ..errors import ConfigError
from .architecture import FLOATS
from .checks import UnsoundError
from .distilled_data import STORED, WHITENING
from .header import Header

MEMORY = 2**28
MEMORY_OF_FILE = 64
"""Bytes that inputs may take, or times what is stored where that is more."""

MOST = {"mean": 1e9, "directions": 1.001, "variances": 1e9}
"""Of the numbers of a whitening; its directions have the length 1."""


def stored_in(tensors: Mapping[str, Tensor], header: Header) -> list[str]:
    """The names of the tensors that a file stores in place of the inputs, if its header says so."""
    if header.parametrisation is None:
        return []
    return [name for name in tensors if name.startswith(STORED)]


def restored(stored: Mapping[str, Tensor], header: Header) -> Tensor:
    """The inputs; refuses parameters that do not fit, or inputs out of proportion to them."""
    assert header.parametrisation
    parametrisation = Parametrisation.from_record(header.parametrisation)
    if {*stored} != {*parametrisation.stores}:
        raise UnsoundError(
            f"it stores {', '.join(sorted(stored))[:100] or 'nothing'} in place of inputs; "
            f"{parametrisation.name} needs {', '.join(parametrisation.stores)}"
        )
    for name, tensor in stored.items():
        if tensor.dtype not in FLOATS or not tensor.numel() or not torch.isfinite(tensor).all():
            raise UnsoundError(f"its tensor {STORED}{name} is not finite everywhere")
    if len({tensor.dtype for tensor in stored.values()}) > 1:
        raise UnsoundError("the tensors that it stores in place of inputs differ in type")
    size = sum(tensor.nbytes for tensor in stored.values())
    try:
        shape = parametrisation.inputs_shape({**stored})
    except (ConfigError, IndexError) as error:
        raise UnsoundError(str(error).partition("\n")[0].rstrip(".")) from None
    item = next(iter(stored.values())).element_size()
    if shape.numel() * item > max(MEMORY, MEMORY_OF_FILE * size):
        raise UnsoundError(
            f"{size:,} bytes are stored in place of inputs of {shape.numel() * item:,} bytes"
        )
    return parametrisation.inputs({**stored})


def whitening_of(
    tensors: Mapping[str, Tensor], header: Header, image: torch.Size
) -> Whitening | None:
    """The whitening that a file holds; refuses one that does not fit its images."""
    if not tensors:
        return None
    named = {name.removeprefix(WHITENING): tensor for name, tensor in tensors.items()}
    numbers, directions = image.numel(), named.get("variances", torch.empty(0)).numel()
    wanted = {
        "mean": (numbers,),
        "directions": (numbers, directions),
        "variances": (directions,),
    }
    shapes = {name: tuple(tensor.shape) for name, tensor in named.items()}
    if header.normalization is None or len(image) != 3 or numbers > LARGEST or shapes != wanted:
        raise UnsoundError(f"its whitening does not fit images of shape {tuple(image)}")
    for name, tensor in named.items():
        if tensor.dtype != torch.float32 or not (tensor.abs() <= MOST[name]).all():
            raise UnsoundError(f"its tensor {WHITENING}{name} is out of range")
    if (named["variances"] < 0).any():
        raise UnsoundError("a variance of its whitening is negative")
    return Whitening(**named)
