"""What the engine knows of a network: how each function that its layers call is computed."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..core.attention import twice_differentiable
from ..core.network import Network
from .stacked import stacked
from .traced.layers import FastLayers

C_KERNELS = "C kernels"
BILINEAR = "torch, derivatives of our own"
TORCH = "torch as it is"
IN_STACKS = {"conv2d", "max_pool2d"}
"""What C kernels compute for several networks at once."""

Ways = dict[str, Counter[str]]
"""The functions that a forward pass calls, with how often, by the way they are computed."""


def ways_of(network: Network) -> Ways:
    """How the functions are computed that one forward pass calls, in module or functional form."""
    with torch.no_grad(), twice_differentiable(recurrent=network.recurrent), _Watch() as watch:
        network.bare({**network.constants, **network.weights}, network.example)
    fast = stacked(network)
    if fast and (fast.by_kernels or fast.chain):
        for way in (BILINEAR, TORCH):
            for name in {*watch.ways[way]} if fast.chain else IN_STACKS & {*watch.ways[way]}:
                watch.ways[C_KERNELS][name] += watch.ways[way].pop(name)
    return {way: names for way, names in watch.ways.items() if names}


class _Watch(FastLayers):
    """Counts what is replaced, and what is not."""

    def __init__(self) -> None:
        super().__init__()
        self.ways: Ways = {way: Counter() for way in (C_KERNELS, BILINEAR, TORCH)}

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        before, self.kernels, self.replaced = self.kernels, False, False
        found = super().__torch_function__(func, types, args, kwargs)
        way = C_KERNELS if self.kernels else BILINEAR if self.replaced else TORCH
        self.kernels |= before
        several = isinstance(found, tuple) and bool(found)
        first: Any = found[0] if several else found
        numbers = isinstance(first, Tensor) and first.is_floating_point()
        if numbers and (self.replaced or several or not first._is_view()):
            self.ways[way][func.__name__.strip("_")] += 1
        return found
