"""What it takes to use an artefact, from shapes alone."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import ArtefactError

COPIES = 14
"""Of the weights of a network that exist at a time while it is tried and trained."""
RESULTS = 3
"""Of the layers' results for an input: they themselves and their gradients."""

SMALL = 2**24
SMALL_OPERATIONS = 10**9
"""Bytes and operations of a network that is tried as it is, in a few milliseconds."""

MEMORY = 3 * 2**28
MEMORY_OF_FILE = 640
"""Bytes that a file may take to use, or times its own size where that is more."""
OPERATIONS = 10**13
OPERATIONS_OF_FILE = 10**7
"""The same for operations, and operations for every byte of it."""


@dataclass(frozen=True)
class Cost:
    """What it takes to train a network on distilled data: an estimate.

    Attributes:
        memory: Bytes.
        operations: Floating-point operations of all updates.
    """

    memory: int
    operations: int

    def check(self, name: str, size: int) -> None:
        """Refuses what is out of proportion to a file.

        Args:
            name: The network that the file names.
            size: Bytes of the file's tensors.
        """
        memory = max(MEMORY, MEMORY_OF_FILE * size)
        operations = max(OPERATIONS, OPERATIONS_OF_FILE * size)
        if self.memory <= memory and self.operations <= operations:
            return
        raise ArtefactError(
            f"To train {name[:100]} as this artefact of {size / 2**20:.1f} MB says takes about "
            f"{self.memory / 2**20:,.0f} MB and {self.operations:.1e} operations; allowed are "
            f"{memory / 2**20:,.0f} MB and {operations:.1e}.",
            "If you trust it, pass the network yourself: distilled.train(Module()), or --model.",
        )


def with_memory_if_small(module: nn.Module, shape: Sequence[int]) -> nn.Module:
    """Gives memory to a network of the meta device if a trial is a matter of milliseconds.

    torch takes a second to import what it needs to compute on the meta device.
    """
    weights = sum(p.nbytes for p in module.parameters())
    small = weights <= SMALL and weights * math.prod(shape) <= SMALL_OPERATIONS
    if small:  # to_empty() imports as much
        state = {n: torch.empty(t.shape, dtype=t.dtype) for n, t in module.state_dict().items()}
        module.load_state_dict(state, assign=True)
    return module


@dataclass(frozen=True)
class Trial:
    """What a network does with inputs, whatever its weights.

    Attributes:
        outputs: The shape of its output for one input.
        results: Bytes of its layers' results for one input.
        operations: Multiplications and additions for one input.
    """

    outputs: torch.Size
    results: int
    operations: int

    @classmethod
    def of(cls, module: nn.Module, shape: Sequence[int], dtype: torch.dtype) -> "Trial":
        """Passes one input of a shape through a network, on its device."""
        device = next(module.parameters()).device
        inputs = torch.empty(1, *shape, device=device, dtype=dtype)
        results, operations = inputs.nbytes, 0

        def count(layer: nn.Module, _: Any, output: Any) -> None:
            nonlocal results, operations
            if isinstance(output, Tensor):
                results += output.nbytes
                weight = getattr(layer, "weight", None)
                if isinstance(weight, Tensor) and weight.ndim > 1:
                    operations += 2 * weight.numel() * (output.numel() // weight.shape[0])

        hooks = [layer.register_forward_hook(count) for layer in module.modules()]
        try:
            with torch.no_grad():
                outputs = module(inputs)
        finally:
            for hook in hooks:
                hook.remove()
        return cls(outputs.shape[1:], results, operations)

    def cost(self, module: nn.Module, images: int, updates: int) -> Cost:
        """What so many updates with so many images each take."""
        weights = sum(p.nbytes for p in module.parameters())
        return Cost(
            COPIES * weights + RESULTS * images * self.results,
            3 * self.operations * images * updates,  # forward, and back to inputs and weights
        )
