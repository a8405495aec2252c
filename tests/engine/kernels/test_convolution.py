"""The C code beside torch's own convolutions and pooling."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from datadistill.engine.kernels import Convolution, Pooling, make_convolution
from datadistill.engine.kernels.library import library

pytestmark = pytest.mark.skipif(library(torch.float64) is None, reason="there is no C compiler")


@st.composite
def cases(draw: st.DrawFn) -> tuple[tuple[int, ...], Pooling | None]:
    """Networks, images, channels, height, width, maps, rows, columns, paddings; and pooling."""
    rows, columns = draw(st.integers(1, 7)), draw(st.integers(1, 7))
    padding = draw(st.integers(0, rows - 1)), draw(st.integers(0, columns - 1))
    height, width = draw(st.integers(rows, 20)), draw(st.integers(columns, 20))
    sizes = draw(st.integers(1, 3)), draw(st.integers(1, 11))
    channels, maps = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    shape = (*sizes, channels, height, width, maps, rows, columns, *padding)
    least = min(height + 2 * padding[0] - rows, width + 2 * padding[1] - columns) + 1
    if draw(st.booleans()):
        return shape, None
    size = draw(st.integers(1, min(4, least)))
    relu, stride = draw(st.booleans()), draw(st.integers(1, 3))
    return shape, Pooling(size, stride, draw(st.integers(0, size // 2)), relu)


def plain(x: Tensor, w: Tensor, b: Tensor, padding: tuple[int, int], pooling: Pooling | None):
    """The same by torch, network by network."""
    results: list[Tensor] = []
    for one, weight, bias in zip(x, w, b, strict=True):
        maps = F.conv2d(one, weight, bias, padding=padding)
        if pooling:
            maps = F.max_pool2d(maps, pooling.size, pooling.stride, pooling.padding)
            maps = maps.relu() if pooling.relu else maps
        results.append(maps)
    return torch.stack(results)


def made(shape: tuple[int, ...], pooling: Pooling | None, like: Tensor) -> Convolution:
    _, _, channels, height, width, maps, rows, columns, *padding = shape
    found = make_convolution(
        (channels, height, width),
        (maps, channels, rows, columns),
        (padding[0], padding[1]),
        pooling,
        like,
    )
    assert found is not None
    return found


@settings(deadline=None, max_examples=150, derandomize=True)
@given(cases(), st.sampled_from([torch.float64, torch.float32]), st.booleans())
def test_all_three_maps_are_those_of_torch(
    case: tuple[tuple[int, ...], Pooling | None], dtype: torch.dtype, same: bool
) -> None:
    shape, pooling = case
    networks, images, channels, height, width, maps, rows, columns, *padding = shape
    random = torch.Generator().manual_seed(sum(shape))

    def draw(*sizes: int) -> Tensor:
        # Whole numbers, so that there are ties for the largest pixel; the first must win.
        return torch.randint(-3, 4, sizes, generator=random).to(dtype)

    x = draw(1 if same else networks, images, channels, height, width)
    x = x.expand(networks, -1, -1, -1, -1).requires_grad_()
    w = draw(networks, maps, channels, rows, columns).requires_grad_()
    b = draw(networks, maps).requires_grad_()
    expected = plain(x, w, b, (padding[0], padding[1]), pooling)
    kernel = made(shape, pooling, x)
    y, chosen = kernel(x.detach(), w.detach(), b.detach())
    assert torch.equal(y, expected)  # sums of whole numbers are exact
    g = draw(*y.shape)
    dx, dw, db = torch.autograd.grad(expected, [x, w, b], g)
    assert torch.equal(chosen.images(g, w.detach()), dx)
    found_w, found_b = chosen.weights(x.detach(), g)
    assert torch.equal(found_w, dw)
    assert torch.equal(found_b, db)
    # The transpose of the gradient: <forward(u), g> = <u, weights(x, g)>.
    u, c = draw(*w.shape), draw(*b.shape)
    again = chosen.forward(x.detach(), u, c)
    assert (again * g).sum() == (u * dw).sum() + (c * db).sum()


def test_what_is_not_a_number_is_not_hidden() -> None:
    shape = (1, 2, 1, 6, 6, 2, 3, 3, 0, 0)
    x = torch.full((1, 2, 1, 6, 6), torch.nan)
    y, _ = made(shape, Pooling(2, 2, relu=True), x)(x, torch.ones(1, 2, 1, 3, 3), torch.ones(1, 2))
    assert y.isnan().all()


@pytest.mark.parametrize(
    ("images", "dtype", "networks"),
    [
        ((1, 6, 7), torch.float32, 2),
        ((2, 6, 6), torch.float32, 2),
        ((1, 6, 6), torch.float64, 2),
        ((1, 6, 6), torch.float32, 1),
    ],
)
def test_tensors_that_would_be_read_beyond_their_ends_are_refused(
    images: tuple[int, ...], dtype: torch.dtype, networks: int
) -> None:
    kernel = made((1, 2, 1, 6, 6, 2, 3, 3, 0, 0), None, torch.zeros(1))
    x = torch.zeros(networks, 3, *images, dtype=dtype)
    with pytest.raises(ValueError, match="A convolution for images"):
        kernel(x, torch.zeros(2, 2, 1, 3, 3), torch.zeros(2, 2))


def test_wide_layers_other_devices_and_other_types_are_left_to_torch() -> None:
    image, kernel = (3, 8, 8), (4, 3, 3, 3)
    assert make_convolution(image, kernel, (0, 0), None, torch.zeros(1)) is not None
    assert make_convolution((64, 8, 8), (64, 64, 3, 3), (0, 0), None, torch.zeros(1)) is None
    assert make_convolution(image, kernel, (3, 3), None, torch.zeros(1)) is None
    assert make_convolution(image, kernel, (0, 0), None, torch.zeros(1).bfloat16()) is None
    assert make_convolution(image, kernel, (0, 0), None, torch.zeros(1, device="meta")) is None
