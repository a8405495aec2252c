"""Winograd's convolutions: torch's, with their transposes."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from datadistill.engine.kernels import kernels
from datadistill.engine.kernels.last import last
from datadistill.engine.kernels.library import functions_for
from datadistill.engine.kernels.winograd import Winograd, worth_winograd
from datadistill.engine.traced.convolution import Settings
from datadistill.engine.traced.wide import WideConvolution

pytestmark = pytest.mark.skipif(
    kernels(torch.float64).functions is None, reason="needs a C compiler"
)
Pair = tuple[int, int]


def made_for(x: Tensor, w: Tensor, padding: Pair, maps: Pair) -> Winograd:
    functions = functions_for(x)
    assert functions
    return Winograd(functions, x.shape, w.shape, padding, maps)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("kernel", [3, 5])
@pytest.mark.parametrize("padding", [(0, 0), (1, 1), (2, 1)])
@pytest.mark.parametrize("size", [(8, 8), (7, 10), (5, 6), (5, 5)])
@pytest.mark.parametrize("images", [2, 40])  # some tiles, and more than are computed at a time
def test_its_three_maps_are_those_of_torch(
    images: int, size: Pair, padding: Pair, kernel: int, dtype: torch.dtype
) -> None:
    x = last(torch.randn(images, 32, *size, dtype=dtype)).requires_grad_()
    w = torch.randn(16, 32, kernel, kernel, dtype=dtype, requires_grad=True)
    b = torch.randn(16, dtype=dtype)
    expected = F.conv2d(x, w, b, padding=padding)
    g = torch.randn_like(expected)
    dx, dw = torch.autograd.grad(expected, (x, w), g)
    high, wide = expected.shape[2:]
    made = made_for(x, w, padding, (high, wide))
    with torch.no_grad():
        found = made.forward(x, w, b), made.images(g, w), made.weights(x, g)
    scale = 1e-12 if dtype == torch.float64 else 2e-5
    for one, other in zip(found, (expected, dx, dw), strict=True):
        torch.testing.assert_close(
            one, other, rtol=scale, atol=scale * float(other.detach().abs().max())
        )


@pytest.mark.parametrize("kernel", [3, 5])
def test_float32_is_about_as_exact_as_with_torch(kernel: int) -> None:
    x, w = torch.randn(4, 64, 16, 16), torch.randn(64, 64, kernel, kernel)
    exact = F.conv2d(x.double(), w.double(), padding=kernel // 2)
    padding = kernel // 2, kernel // 2
    found = made_for(x, w, padding, (16, 16)).forward(x, w, torch.zeros(64))
    error, of_torch = ((y - exact).norm() for y in (found, F.conv2d(x, w, padding=padding)))
    assert error < 10 * of_torch


def test_other_shapes_are_refused() -> None:
    x, w, b = torch.randn(2, 16, 6, 6), torch.randn(16, 16, 3, 3), torch.zeros(16)
    made = made_for(x, w, (1, 1), (6, 6))
    for given in ((x[:1], w, b), (x, w[:8], b)):
        with pytest.raises(ValueError, match="got"):
            made.forward(*given)
    with pytest.raises(ValueError, match="got"):
        made.weights(x, torch.randn(2, 16, 5, 5))


@pytest.mark.parametrize(
    ("kernel", "padding", "worth"),
    [
        ((32, 32, 3, 3), (1, 1), True),
        ((32, 32, 3, 3), (3, 3), False),
        ((32, 32, 5, 5), (3, 3), True),
        ((32, 32, 7, 7), (3, 3), False),
        ((32, 32, 3, 5), (1, 2), False),
        ((32, 24, 3, 3), (1, 1), False),  # half a vector
        ((512, 512, 3, 3), (1, 1), False),  # more weights than tiles
    ],
)
def test_it_is_used_where_it_is_worth_while(
    kernel: tuple[int, ...], padding: Pair, worth: bool
) -> None:
    images = torch.Size((10, kernel[1], 8, 8))
    assert worth_winograd(images, torch.Size(kernel), padding, (8, 8)) == worth


def test_a_wide_convolution_uses_it_with_a_stride_of_1_alone() -> None:
    x, w = last(torch.randn(10, 32, 8, 8)), torch.randn(32, 32, 3, 3)
    for stride in (1, 2):
        settings = Settings((stride, stride), (1, 1), (1, 1), 1)
        made = WideConvolution(x.shape, w.shape, settings, x)
        assert (made.winograd is not None) == (stride == 1)
        y = made.forward(x[None], w[None], torch.zeros(1, 32))
        torch.testing.assert_close(
            y[0], F.conv2d(x, w, stride=stride, padding=1), rtol=1e-4, atol=1e-4
        )
