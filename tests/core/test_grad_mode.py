"""What trains computes gradients, also where its caller has turned them off."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import datadistill as dd

DATA = (torch.randn(30, 1, 8, 8, generator=torch.Generator().manual_seed(0)), torch.arange(30) % 3)


def linear() -> dd.models.Linear:
    return dd.models.Linear(size=8, classes=3)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_block_without_gradients_changes_nothing(mode: Callable[[], Any]) -> None:
    def all_of_it() -> list[torch.Tensor]:
        distilled = dd.distill(DATA, linear(), iterations=2, networks=2, batch_size=8)
        trained = distilled.train().state_dict().values()
        score = torch.tensor(dd.evaluate(distilled, DATA, networks=2).values)
        return [distilled.inputs, score, *trained]

    wanted = all_of_it()
    with mode():
        found = all_of_it()
        assert not torch.is_grad_enabled()
    assert all(map(torch.equal, found, wanted))
