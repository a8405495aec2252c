"""Max-pooling in C: torch's, with its derivatives, and with ReLU where that comes before."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from datadistill.engine.kernels import kernels
from datadistill.engine.kernels.last import is_last, last
from datadistill.engine.kernels.library import functions_for
from datadistill.engine.kernels.pooling import Pooling
from datadistill.engine.traced.layers import FastLayers

pytestmark = pytest.mark.skipif(
    kernels(torch.float64).functions is None, reason="needs a C compiler"
)
MOVES = {
    "apart": ((2, 2), (2, 2), (0, 0)),
    "overlapping": ((3, 3), (2, 2), (1, 1)),
    "uneven": ((3, 2), (1, 3), (1, 0)),
    "with gaps": ((2, 1), (3, 2), (0, 0)),
}


def images(dtype: torch.dtype = torch.float64) -> Tensor:
    """With equal pixels, of which the first counts."""
    return last(torch.randn(3, 5, 8, 9, dtype=dtype).mul(2).round()).requires_grad_()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("name", MOVES)
def test_it_chooses_as_torch_does_and_is_linear_afterwards(
    name: str, relu: bool, dtype: torch.dtype
) -> None:
    x, moves = images(dtype), MOVES[name]
    functions = functions_for(x)
    assert functions
    made = Pooling(functions, x.shape, *moves, relu=relu)
    expected = F.max_pool2d(F.relu(x) if relu else x, *moves)
    g, v = torch.randn_like(expected), torch.randn_like(x)
    (back,) = torch.autograd.grad(expected, x, g)
    y, index = made.choose(x.detach())
    assert torch.equal(y, expected)
    assert is_last(y)
    torch.testing.assert_close(made.put_back(g, index)[0], back)
    selected = made.select(v, index)[0]
    torch.testing.assert_close((selected * g).sum(), (v * back).sum())
    with pytest.raises(ValueError, match="got"):
        made.choose(x.detach()[:2])
    with pytest.raises(ValueError, match="got"):
        made.put_back(v, index)


@pytest.mark.parametrize("relu", [False, True])
def test_what_is_no_number_stays(relu: bool) -> None:
    x = last(torch.randn(1, 3, 4, 4))
    x[0, 0, 0, 0] = x[0, 1, 1, 1] = float("nan")
    x[0, 2] = -float("inf")
    functions = functions_for(x)
    assert functions
    made = Pooling(functions, x.shape, (2, 2), (2, 2), (0, 0), relu=relu)
    expected = F.max_pool2d(F.relu(x) if relu else x, 2)
    torch.testing.assert_close(made.choose(x)[0], expected, equal_nan=True)


def changed(x: Tensor) -> Tensor:
    y = F.relu(x)
    y -= 0.5
    return F.max_pool2d(y, 2)


def changed_before(x: Tensor) -> Tensor:
    own = x.clone()
    y = F.relu(own)
    own -= 0.5
    return F.max_pool2d(y, 2)


def used_twice(x: Tensor) -> Tensor:
    y = torch.relu(x)
    return torch.max_pool2d(y, 2) + y[:, :, ::2, 1::2]


def turned(x: Tensor) -> Tensor:
    return F.max_pool2d(x.unsqueeze(0).relu()[0].transpose(2, 3), (2, 1))


USES: dict[str, tuple[Callable[[Tensor], Tensor], bool]] = {
    "alone": (lambda x: F.max_pool2d(x, 3, 2, 1), True),
    "after ReLU": (lambda x: F.max_pool2d(F.relu(x), 3, 2, 1), True),
    "modules": (nn.Sequential(nn.ReLU(), nn.MaxPool2d(2)), True),
    "ReLU in place": (lambda x: F.max_pool2d(F.relu(x.clone(), inplace=True), 2), True),
    "a stack of one network": (
        lambda x: F.max_pool2d(x.unsqueeze(0).relu().flatten(0, 1), 2),
        True,
    ),
    "changed before": (changed_before, True),
    "used twice": (used_twice, True),
    "turned": (turned, False),
    "rounded up": (lambda x: F.max_pool2d(F.relu(x), 2, ceil_mode=True), False),
    "dilated": (lambda x: F.max_pool2d(F.relu(x), 2, dilation=2), False),
    "with numbers": (lambda x: F.max_pool2d(F.relu(x), 2, return_indices=True)[0], False),
}


@pytest.mark.parametrize("name", USES)
def test_in_a_network_it_has_torchs_first_and_second_derivatives(name: str) -> None:
    use, replaced = USES[name]
    x = last(torch.randn(3, 5, 8, 8, dtype=torch.float64)).requires_grad_()

    def derivatives(y: Tensor) -> list[Tensor]:
        (first,) = torch.autograd.grad((y**3).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad((first**2).sum(), x)
        return [y, first, second]

    expected = derivatives(use(x))
    with FastLayers() as layers:
        found = use(x)
    assert layers.kernels == replaced
    for own, wanted in zip(derivatives(found), expected, strict=True):
        torch.testing.assert_close(own, wanted)


def test_what_was_changed_after_relu_is_pooled_as_it_is() -> None:  # autograd refuses it
    x = last(torch.randn(3, 5, 8, 8))
    with torch.no_grad(), FastLayers():
        found = changed(x)
    with torch.no_grad():
        assert torch.equal(found, changed(x))


def test_relu_is_not_computed_on_more_pixels_than_needed() -> None:
    x = last(torch.randn(2, 4, 8, 8, dtype=torch.float64)).requires_grad_()
    with FastLayers():
        y = F.max_pool2d(F.relu(x), 2)
    assert y.grad_fn is not None
    (before,) = [own for own, _ in y.grad_fn.next_functions if own is not None]
    assert "AccumulateGrad" in before.name(), "ReLU is part of pooling"
