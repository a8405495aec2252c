"""What cannot learn is noticed in the first outer steps."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import datadistill as dd
from datadistill.errors import ZeroGradientError

INPUTS = torch.randn(40, 6, generator=torch.Generator().manual_seed(0))
DATA = (INPUTS, (INPUTS[:, 0] > 0).long())


class Cut(nn.Module):
    """A network whose inputs get a gradient only if ``between`` has one."""

    def __init__(self, between: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.body, self.head, self.between = nn.Linear(6, 5), nn.Linear(5, 2), between

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.between(self.body(x)))


def distil(between: Callable[[Tensor], Tensor], iterations: int = 10, **more: Any) -> None:
    settings: dict[str, Any] = {"networks": 2, "batch_size": 8, "validation": 0.0, **more}
    dd.distill(DATA, Cut(between), iterations=iterations, **settings)


@pytest.mark.parametrize("between", [torch.sign, torch.detach, torch.round])
def test_a_network_without_a_gradient_for_its_inputs_is_refused(
    between: Callable[[Tensor], Tensor],
) -> None:
    made: list[int] = []

    def count(told: dd.Progress) -> None:
        made.append(told.done)

    with pytest.raises(ZeroGradientError, match=r"outputs of Cut have no gradient.*\n.*sign") as no:
        distil(between, progress=count)
    assert made == [1, 2]
    assert len(str(no.value).splitlines()) == 2
    with pytest.raises(ZeroGradientError, match=r"first 1 outer step\(s\)"):
        distil(between, iterations=1)


def test_an_objective_without_a_gradient_is_refused_with_another_reason() -> None:
    def errors(logits: Tensor, labels: Tensor) -> Tensor:
        return (logits.argmax(1) != labels).to(logits).mean() + 1 + 0 * logits.sum()

    with pytest.raises(ZeroGradientError, match=r"outer step\(s\)\.\n.*objective"):
        distil(torch.tanh, objective=errors)


def test_what_learns_and_what_has_nothing_left_to_learn_goes_on() -> None:
    def satisfied(logits: Tensor, _: Tensor) -> Tensor:
        return 0 * logits.sum()

    distil(torch.tanh, 4)
    distil(torch.tanh, 4, objective=satisfied)
