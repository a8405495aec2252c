"""How many graphs of updates are kept, from what each takes."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from ..core.distilled import Step
from ..core.learner import Learner
from .tape import Recorder

GRAPH_BYTES = 6 * 2**20
"""What the graphs of all updates may take, to be kept from the way forward for the way back."""
CHAINED_GRAPH_BYTES = 13 * 2**20
"""The same with the gradients themselves, where layers are one call of C: 30 updates of a LeNet."""
CHAINED_WINDOW_BYTES = 9 * 2**20
"""Of these, those of a few updates at a time: 5 of four LeNets, whose weights take as much."""
WINDOW_BYTES = 4 * 2**20
"""What the graphs of a few updates may take, which are built again together on the way back."""


CGROUP = Path("/sys/fs/cgroup/memory.max")


def machine_memory() -> int:
    """The bytes of memory that the machine has, or its container may take; 8 GiB if not known."""
    found = 8 * 2**30
    with suppress(AttributeError, ValueError, OSError):
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(ValueError, OSError):
        found = min(found, int(CGROUP.read_text()))
    return found


WIDE_GRAPH_BYTES = max(2**30, machine_memory() // 8)
"""The same for wide networks, with weights and gradients: to compute them twice takes long."""


class Measured(Protocol):
    """What tells the size of a graph."""

    def graph_bytes(self, learner: Learner, step: Step) -> int:
        """The bytes that a recorded gradient keeps beside the learner and the step."""
        ...


class GraphBudget:
    """Memory for kept graphs.

    Args:
        all_updates: Bytes for the graphs of all updates.
        window: Bytes for those of some at a time, where there is no room for all.
        with_weights: Whether the weights and gradients that are kept with them count.
    """

    def __init__(
        self, all_updates: int, window: int = WINDOW_BYTES, *, with_weights: bool = False
    ) -> None:
        self._all, self._window, self._with_weights = all_updates, window, with_weights
        self._sizes: dict[tuple[torch.Size, ...], int] = {}

    def graphs(self, recorder: Measured, learner: Learner, step: Step, updates: int) -> int:
        """Of how many updates recorded gradients may be kept at a time: all, or at least one."""
        least = sum(own.nbytes for own in learner.weights.values())
        if least > max(self._window, self._all / updates):
            return 1
        shape = (*(own.shape for own in learner.leaves()), step.inputs.shape)
        if shape not in self._sizes:
            self._sizes[shape] = recorder.graph_bytes(learner, step)
        size = self._sizes[shape]
        besides = 2 * least if self._with_weights else 0
        if updates * (size + besides) <= self._all:
            return updates
        return max(1, self._window // size)


def graph_bytes(recorder: Recorder, learner: Learner, step: Step) -> int:
    """The bytes that a recorded gradient keeps beside the learner and the step."""
    kept: dict[int, int] = {}

    def pack(saved: Tensor) -> Tensor:
        storage = saved.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return saved

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved):
        g = recorder.record(learner.weights, step)
    kept |= {one.untyped_storage().data_ptr(): one.nbytes for one in g.values.values()}
    there = {one.untyped_storage().data_ptr() for one in (*learner.leaves(), step.inputs)}
    # A graph whose saved tensors went through Python holds itself alive until it is used.
    g.products({name: torch.zeros_like(w) for name, w in learner.weights.items()})
    return sum(size for place, size in kept.items() if place not in there)
