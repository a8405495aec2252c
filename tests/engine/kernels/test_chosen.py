"""Convolutions of the pixels that were chosen, at the edges of what the quickest kernels take."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from datadistill.engine.kernels import Pooling, make_convolution
from datadistill.engine.kernels.library import library

pytestmark = pytest.mark.skipif(library(torch.float32) is None, reason="there is no C compiler")
NETWORKS, IMAGES, DEAD = 2, 3, 255
POOLING = Pooling(2, 2, relu=True)


def reference(x: Tensor, w: Tensor, b: Tensor, padding: tuple[int, int], index: Tensor) -> Tensor:
    """S (w * x + b) for a selection that is given."""
    results: list[Tensor] = []
    for one, weight, bias, numbers in zip(x, w, b, index, strict=True):
        maps = F.conv2d(one, weight, bias, padding=padding)
        windows = maps.unfold(2, 2, 2).unfold(3, 2, 2).flatten(-2)
        taken = windows.gather(-1, (numbers.long() % 4).unsqueeze(-1)).squeeze(-1)
        results.append(torch.where(numbers == DEAD, 0, taken))
    return torch.stack(results)


def compare(
    image: tuple[int, int, int],
    kernel: tuple[int, int, int, int],
    padding: tuple[int, int],
    dead: float = 0.3,
    same: bool = False,
) -> None:
    random = torch.Generator().manual_seed(sum(image) + sum(kernel))

    def draw(*sizes: int) -> Tensor:
        return torch.randn(sizes, generator=random)

    x = draw(1 if same else NETWORKS, IMAGES, *image).expand(NETWORKS, -1, -1, -1, -1)
    w, b = draw(NETWORKS, *kernel), draw(NETWORKS, kernel[0])
    made = make_convolution(image, kernel, padding, POOLING, x)
    assert made is not None
    y, chosen = made(x, w, b)
    index = chosen.index
    assert index is not None
    index.copy_(torch.randint(4, index.shape, generator=random))
    index[torch.rand(index.shape, generator=random) < dead] = DEAD
    g = draw(*y.shape)
    wide = [t.double().requires_grad_() for t in (x, w, b)]
    expected = reference(wide[0], wide[1], wide[2], padding, index)
    dx, dw, db = torch.autograd.grad(expected, wide, g.double())
    g[index == DEAD] = torch.nan  # is not looked at
    found = [chosen.forward(x, w, b), chosen.images(g, w), *chosen.weights(x, g)]
    for one, other in zip(found, [expected, dx, dw, db], strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-5 * kernel[2] ** 2)


@pytest.mark.parametrize("maps", [1, 6, 8, 9, 16, 17, 32])
@pytest.mark.parametrize("channels", [1, 3, 6, 8])
@pytest.mark.parametrize(("side", "padding"), [(3, 0), (3, 2), (5, 0), (5, 2)])
def test_maps_and_channels(maps: int, channels: int, side: int, padding: int) -> None:
    compare((channels, 12, 12), (maps, channels, side, side), (padding, padding))


@pytest.mark.parametrize("image", [(1, 28, 28), (1, 7, 9), (3, 9, 18), (2, 23, 6), (1, 6, 40)])
@pytest.mark.parametrize("maps", [5, 12])
def test_sizes_of_which_pooling_leaves_rows_and_columns_over(
    image: tuple[int, int, int], maps: int
) -> None:
    compare(image, (maps, image[0], 5, 5), (2, 2))
    compare(image, (maps, image[0], 5, 4), (0, 1))


@pytest.mark.parametrize("rows", range(1, 10))
@pytest.mark.parametrize("columns", range(1, 10))
def test_kernels_of_all_sizes(rows: int, columns: int) -> None:
    padding = (rows // 2, (columns - 1) // 2)
    for maps in (4, 10):
        compare((2, 13, 12), (maps, 2, rows, columns), padding)


@pytest.mark.parametrize("dead", [0.0, 1.0])
@pytest.mark.parametrize("same", [False, True])
def test_all_pixels_or_none_with_images_that_networks_share(dead: float, same: bool) -> None:
    compare((1, 28, 28), (6, 1, 5, 5), (2, 2), dead, same)
    compare((6, 14, 14), (16, 6, 5, 5), (0, 0), dead, same)


def test_images_that_lie_apart() -> None:
    image, kernel = (1, 10, 10), (6, 1, 3, 3)
    wide = torch.randn(NETWORKS, 2 * IMAGES, *image)
    w, b = torch.randn(NETWORKS, *kernel), torch.randn(NETWORKS, 6)
    made = make_convolution(image, kernel, (1, 1), POOLING, wide)
    assert made is not None
    y, chosen = made(wide[:, ::2], w, b)
    torch.testing.assert_close(chosen.forward(wide[:, ::2], w, b), y)
    apart, together = (chosen.weights(x, y) for x in (wide[:, ::2], wide[:, ::2].contiguous()))
    assert all(map(torch.equal, apart, together))
