"""Convolutions of images of few channels: torch's, with the gradient of their weights."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from datadistill.engine.kernels import kernels
from datadistill.engine.kernels.direct import Direct, worth_direct
from datadistill.engine.kernels.last import last
from datadistill.engine.kernels.library import functions_for
from datadistill.engine.traced.convolution import Settings
from datadistill.engine.traced.wide import WideConvolution

pytestmark = pytest.mark.skipif(
    kernels(torch.float64).functions is None, reason="needs a C compiler"
)
Pair = tuple[int, int]


def made_for(x: Tensor, w: Tensor, padding: Pair, maps: Pair) -> Direct:
    functions = functions_for(x)
    assert functions
    return Direct(functions, x.shape, w.shape, padding, maps)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("kernel", [(3, 3), (5, 5), (2, 4), (1, 1)])
@pytest.mark.parametrize("size", [(8, 8), (7, 13), (5, 6)])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("maps", [16, 64, 80])
def test_it_and_the_gradient_of_its_weights_are_those_of_torch(
    maps: int, channels: int, size: Pair, kernel: Pair, dtype: torch.dtype
) -> None:
    padding = kernel[0] // 2, kernel[1] - 1
    x = torch.randn(3, channels, *size, dtype=dtype)
    w = torch.randn(maps, channels, *kernel, dtype=dtype, requires_grad=True)
    b = torch.randn(maps, dtype=dtype)
    expected = F.conv2d(x, w, b, padding=padding)
    g = torch.randn_like(expected)
    (dw,) = torch.autograd.grad(expected, w, g)
    high, wide = expected.shape[2:]
    made = made_for(x, w, padding, (high, wide))
    scale = 1e-12 if dtype == torch.float64 else 2e-5
    for lying in (x, last(x)):
        found = made.forward(lying, w, b), made.weights(lying, g)
        for one, other in zip(found, (expected, dw), strict=True):
            atol = scale * float(other.detach().abs().max())
            torch.testing.assert_close(one, other, rtol=scale, atol=atol)


def test_other_shapes_are_refused() -> None:
    x, w, b = torch.randn(2, 3, 6, 6), torch.randn(16, 3, 3, 3), torch.zeros(16)
    made = made_for(x, w, (1, 1), (6, 6))
    for given in ((x[:1], w, b), (x, w[:8], b)):
        with pytest.raises(ValueError, match="got"):
            made.forward(*given)
    with pytest.raises(ValueError, match="got"):
        made.weights(x, torch.randn(2, 16, 5, 5))


@pytest.mark.parametrize(
    ("kernel", "padding", "worth"),
    [
        ((64, 3, 5, 5), (2, 2), True),
        ((64, 3, 5, 5), (5, 2), False),
        ((64, 5, 5, 5), (2, 2), False),  # too many channels
        ((60, 3, 5, 5), (2, 2), False),  # a part of a vector
    ],
)
def test_it_is_used_where_it_is_worth_while(
    kernel: tuple[int, ...], padding: Pair, worth: bool
) -> None:
    assert worth_direct(torch.Size(kernel), padding) == worth


def test_a_wide_convolution_uses_it_with_a_stride_of_1_alone() -> None:
    x, w = torch.randn(10, 3, 8, 8), torch.randn(64, 3, 5, 5)
    for stride in (1, 2):
        settings = Settings((stride, stride), (2, 2), (1, 1), 1)
        made = WideConvolution(x.shape, w.shape, settings, x)
        assert (made.direct is not None) == (stride == 1)
        y = made.forward(x[None], w[None], torch.zeros(1, 64))
        torch.testing.assert_close(
            y[0], F.conv2d(x, w, stride=stride, padding=2), rtol=1e-4, atol=1e-4
        )
