"""What a graph keeps is counted, and then let go."""

import gc

import torch
from torch import Tensor, nn

from datadistill.engine.saved import saved_storages


def test_every_storage_that_a_graph_keeps_is_counted_once() -> None:
    layer, images = nn.Linear(5, 3, bias=False), torch.randn(7, 5)
    kept = saved_storages(lambda: layer(images).tanh().square())
    inputs, result = 7 * 5 * 4, 7 * 3 * 4  # of tanh, kept by it and by the square
    assert sorted(kept.values()) == sorted([inputs, result])


def test_the_graph_is_gone_afterwards() -> None:
    layer, images = nn.Linear(5, 3), torch.randn(7, 5)

    def tensors() -> int:
        saved_storages(lambda: layer(images).tanh())
        gc.collect()
        return sum(issubclass(type(one), Tensor) for one in gc.get_objects())

    first = tensors()
    assert max(tensors() for _ in range(3)) <= first
