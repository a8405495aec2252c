"""Inputs that an artefact does not hold: they are made of the parameters that it stores instead."""

from collections.abc import Mapping

import torch
from torch import Tensor

from ..core.parametrisation import Parametrisation
from ..errors import ConfigError
from .architecture import FLOATS
from .checks import UnsoundError
from .distilled_data import STORED
from .header import Header

MEMORY = 2**28
MEMORY_OF_FILE = 64
"""Bytes that inputs may take, or times what is stored where that is more."""


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
