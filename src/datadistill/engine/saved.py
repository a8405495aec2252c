"""What the graph of a forward pass keeps in memory."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks


def saved_storages(forward: Callable[[], Tensor]) -> dict[int, int]:
    """The address and the bytes of every storage that the graph of ``forward()`` keeps."""
    seen: dict[int, int] = {}

    def pack(tensor: Tensor) -> None:  # returning it, the graph would hold itself alive
        storage = tensor.untyped_storage()
        seen[storage.data_ptr()] = storage.nbytes()

    def unpack(_: None) -> Tensor:
        raise AssertionError("this graph is only looked at")

    with torch.enable_grad(), saved_tensors_hooks(pack, unpack):
        result = forward()  # alive until all has been seen: no address is used twice
    del result
    return seen
