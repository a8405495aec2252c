"""How large the operations of a network are."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from ..core.network import Network

IMAGES = 10
"""Images in a step, as most have them: what is found must not depend on the step."""
FEW_NUMBERS = 8_000
"""Of fewer numbers an operation takes less time than the call of it. Chosen between the networks of
``benchmarks/own_networks.py`` that gained side by side (3,600 to 5,600) and those that lost (from
10,800): J = 4, one busy machine."""


def numbers_of_an_operation(network: Network) -> float:
    """How many numbers an operation gives, on average of a forward pass, weights included."""
    example = network.example[:1].expand(IMAGES, *network.example.shape[1:])
    with torch.no_grad(), _Numbers() as counted:
        network(network.stack([network.weights]), example)
    weights = sum(w.numel() for w in network.weights.values())
    return (counted.numbers + weights) / max(1, counted.operations)


class _Numbers(TorchDispatchMode):
    """Counts operations and the numbers that they give; views are none."""

    def __init__(self) -> None:
        super().__init__()
        self.operations = self.numbers = 0

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        call: Callable[..., Any] = func
        found = call(*args, **(kwargs or {}))
        if isinstance(found, Tensor) and not func.is_view:
            self.operations += 1
            self.numbers += found.numel()
        return found
