"""Traced updates compute what the plain engine computes, for every kind of layer."""

import gc
import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.fx.experimental.proxy_tensor import make_fx

from datadistill.core.adjoint import Truncated
from datadistill.core.distilled import Position
from datadistill.core.distiller import Distiller
from datadistill.core.engine import Engine, PlainEngine
from datadistill.core.initialization import RandomInit
from datadistill.core.network import Network
from datadistill.core.objective import Classification
from datadistill.core.settings import DistillerConfig
from datadistill.engine import EngineName, FastEngine, using
from datadistill.engine.garbage import uncollected
from datadistill.engine.kernels import kernels
from datadistill.engine.kernels.averaging import Averaging
from datadistill.engine.kernels.last import (
    AveragingLast,
    NormalisationLast,
    Response,
    is_last,
    last,
)
from datadistill.engine.kernels.library import functions_for
from datadistill.engine.kernels.normalisation import Normalisation, Rows
from datadistill.engine.kernels.windows import Windows
from datadistill.engine.knowledge import ways_of
from datadistill.engine.traced import functions, traced
from datadistill.engine.traced.convolution import Settings
from datadistill.engine.traced.layers import kernels_of
from datadistill.engine.traced.simplify import simplify
from datadistill.engine.traced.wide import WideConvolution
from tests.helpers import AWKWARD, NETWORKS, relative_error

needs_compiler = pytest.mark.skipif(
    kernels(torch.float64).functions is None, reason="no C compiler"
)


def sequential(*layers: nn.Module, features: int) -> Callable[[int], nn.Module]:
    return lambda outputs: nn.Sequential(*layers, nn.Flatten(), nn.Linear(features, outputs))


class Functional(nn.Module):
    """Layers as functions, a residual sum, and a mean over pixels."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.kernel = nn.Parameter(torch.randn(8, 1, 3, 3) / 3)
        self.scale = nn.Parameter(torch.ones(8))
        self.shift = nn.Parameter(torch.zeros(8))
        self.out = nn.Linear(8, outputs)

    def reset_parameters(self) -> None:
        nn.init.normal_(self.kernel, std=0.3)
        nn.init.normal_(self.scale, 1, 0.1)
        nn.init.normal_(self.shift, std=0.1)

    def forward(self, x: Tensor) -> Tensor:
        maps = F.conv2d(x, self.kernel, padding=1)
        maps = maps + F.silu(F.group_norm(maps, 2, self.scale, self.shift))
        maps = F.instance_norm(maps).tanh()
        rows = F.layer_norm(F.adaptive_avg_pool2d(maps, 2).flatten(1), (32,))
        return self.out(rows.unflatten(1, (8, 4)).mean(2))


class Tokens(nn.Module):
    """Patches with places from an embedding, and a transformer's layer."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, 4, 2, stride=2)
        self.places = nn.Embedding(9, 4)
        self.layer = nn.TransformerEncoderLayer(4, 2, 6, activation="gelu", batch_first=True)
        self.out = nn.Linear(4, outputs)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.patches(x).flatten(2).transpose(1, 2)
        return self.out(self.layer(tokens + self.places(torch.arange(9))).mean(1))


LAYERS: dict[str, Callable[[int], nn.Module]] = {
    **{name: NETWORKS[name] for name in ("mlp", "shared weights", "convolutional")},
    **{name: AWKWARD[name] for name in ("attention", "batch normalised", "branches", "lenet-like")},
    "recurrent": AWKWARD["recurrent"],
    "functional": Functional,
    "tokens": Tokens,
    "group norm": sequential(
        nn.Conv2d(1, 6, 3), nn.GroupNorm(3, 6), nn.SiLU(), nn.AdaptiveAvgPool2d(2), features=24
    ),
    "instance norm": sequential(nn.Conv2d(1, 4, 3), nn.InstanceNorm2d(4), nn.GELU(), features=64),
    "layer norm": sequential(nn.Linear(6, 5), nn.LayerNorm([6, 5]), nn.GELU(), features=30),
    "batch norm": sequential(
        nn.Conv2d(1, 4, 3, stride=2), nn.BatchNorm2d(4, affine=False), nn.ELU(), features=16
    ),
    "batch norm of rows": sequential(nn.Flatten(), nn.BatchNorm1d(36), nn.Tanh(), features=36),
    "depthwise": sequential(
        nn.Conv2d(1, 4, 3), nn.Conv2d(4, 4, 3, padding=1, groups=4, bias=False), features=64
    ),
    "strided": sequential(
        *(nn.Conv2d(1, 5, 3, padding=1), nn.Tanh(), nn.Conv2d(5, 6, 3, stride=2), nn.Tanh()),
        features=24,
    ),
    "narrow": sequential(
        *(nn.Conv2d(1, 4, 3, padding=1), nn.InstanceNorm2d(4), nn.Tanh()),
        *(nn.Conv2d(4, 5, (3, 2), padding=(1, 0)), nn.Tanh(), nn.Conv2d(5, 4, 3, bias=False)),
        features=48,
    ),
    "more weights than pixels": sequential(
        *(nn.Conv2d(1, 40, 3, stride=3), nn.Tanh(), nn.Conv2d(40, 30, 2, dilation=1), nn.Tanh()),
        features=30,
    ),
    "average pooling": sequential(
        nn.Conv2d(1, 3, 2),
        nn.AvgPool2d((2, 3)),
        nn.Tanh(),
        nn.AdaptiveAvgPool2d((2, 1)),
        features=6,
    ),
    "dropout": sequential(nn.Flatten(), nn.Linear(36, 5), nn.Tanh(), nn.Dropout(), features=5),
}
BATCH = torch.randn(7, 1, 6, 6, generator=torch.Generator().manual_seed(5)).double()
LABELS = torch.arange(7) % 3
UPDATES = 8
LATE = functions.UPDATES_BEFORE // UPDATES + 1
"""An outer step at which updates of a single network are traced."""


def distiller(make: Callable[[int], nn.Module], networks: int) -> Distiller:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        network = Network(make(3), BATCH, dtype=torch.float64)
    config = DistillerConfig(
        steps=UPDATES // 2, epochs=2, networks=networks, images_per_class=2, learning_rate=0.2
    )
    return Distiller(network, RandomInit("module"), Classification(), config)


def gradient(
    made: Distiller, engine: Engine, outer_step: int = LATE
) -> tuple[Tensor, dict[str, Tensor]]:
    object.__setattr__(made, "own_engine", engine)
    made.__dict__.pop("engine", None)
    state = replace(made.init(BATCH.shape[1:], LABELS), outer_step=outer_step)
    return made.gradient(state, (BATCH, LABELS))


def known(network: Network) -> list[bool]:
    """Whether what was asked of a network could be traced."""
    found = functions._known.get(network, [])  # pyright: ignore[reportPrivateUsage]
    return [one is not None for _, _, one in found]


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_are_those_of_the_plain_engine(name: str) -> None:
    made = distiller(LAYERS[name], 2)
    losses, expected = gradient(made, PlainEngine(made.network, made.objective))
    fast_losses, found = gradient(made, FastEngine(made.network, made.objective))
    assert known(made.network) == [True]
    assert relative_error(fast_losses, losses) < 1e-11
    for key, one in expected.items():
        assert relative_error(found[key], one) < 1e-10, key


def test_they_are_traced_when_earlier_outer_steps_show_that_the_run_is_long() -> None:
    """By the number of the outer step: a run that is resumed there makes it in the same way."""
    made = distiller(LAYERS["dropout"], 2)
    engine = FastEngine(made.network, made.objective)
    first = math.ceil(functions.UPDATES_BEFORE / (2 * UPDATES))
    early = gradient(made, engine, first - 1)
    assert known(made.network) == []
    late = gradient(made, engine, first)
    assert known(made.network) == [True]
    assert torch.equal(gradient(made, engine, first - 1)[1]["inputs"], early[1]["inputs"])
    resumed = FastEngine(made.network, made.objective)
    assert torch.equal(gradient(made, resumed, first)[1]["inputs"], late[1]["inputs"])


@pytest.mark.parametrize("name", ["lenet-like", "group norm"])
def test_so_are_updates_before_a_window(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = distiller(LAYERS[name], 2)
    made = replace(made, adjoint=Truncated(UPDATES, random=False))
    made = replace(made, config=replace(made.config, epochs=5))
    _, expected = gradient(made, PlainEngine(made.network, made.objective))

    def never(self: object, *_: object) -> None:
        raise AssertionError("computed by autograd")

    monkeypatch.setattr(FastEngine, "_gradient", never)
    _, found = gradient(made, FastEngine(made.network, made.objective))
    for key, one in expected.items():
        assert relative_error(found[key], one) < 1e-10, key


@needs_compiler
def test_narrow_convolutions_are_computed_in_c() -> None:
    ways = ways_of(Network(LAYERS["narrow"](3), BATCH, dtype=torch.float64))
    assert ways["C kernels"]["conv2d"] == 2, "not the first, which has one channel"
    assert ways["torch, derivatives of our own"] == {"conv2d": 1}


@pytest.mark.parametrize("name", ["group norm", "batch norm", "lenet-like", "narrow", "mlp"])
def test_without_kernels_they_are_the_same_up_to_rounding(name: str) -> None:
    made = distiller(LAYERS[name], 2)
    _, expected = gradient(made, PlainEngine(made.network, made.objective))
    with using("torch"):
        engine = FastEngine(made.network, made.objective)
        assert kernels_of(made.network) is None
    _, found = gradient(made, engine)
    assert known(made.network) == [True]
    for key, one in expected.items():
        assert relative_error(found[key], one) < 1e-10, key


class Deciding(nn.Module):
    """Which layer it uses depends on its inputs: no straight-line code computes that."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(36, outputs), nn.Linear(36, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return (self.one if float(x.detach().sum()) > 0 else self.other)(x.flatten(1))


def test_what_cannot_be_traced_is_computed_by_autograd() -> None:
    made = distiller(Deciding, 1)
    _, expected = gradient(made, PlainEngine(made.network, made.objective))
    _, found = gradient(made, FastEngine(made.network, made.objective))
    assert known(made.network) == [False]
    for key, one in expected.items():
        assert relative_error(found[key], one) < 1e-10, key


def test_graphs_that_are_kept_and_those_that_are_built_again_give_the_same_bits() -> None:
    made = distiller(LAYERS["group norm"], 1)
    kept = FastEngine(made.network, made.objective)
    _, expected = gradient(made, kept)
    few = FastEngine(made.network, made.objective)
    few._budget._all = few._budget._window = 1  # pyright: ignore[reportPrivateUsage]
    _, found = gradient(made, few)
    for key, one in expected.items():
        assert torch.equal(found[key], one)


def test_the_kept_bytes_are_those_of_the_saved_tensors() -> None:
    made = distiller(LAYERS["dropout"], 1)
    steps = made.parametrisation.steps(made.init(BATCH.shape[1:], LABELS).current).for_each(1)
    weights = made.network.stack([made.network.weights])
    found = traced(made.network, None, made.objective, weights, steps[Position(0, 0)])
    assert found
    kept = found.record(weights, steps[Position(0, 0)]).kept
    assert 0 < found.bytes <= sum(one.untyped_storage().nbytes() for one in kept)


@needs_compiler
@pytest.mark.parametrize("window", [(2, 2), (3, 2), (1, 4), (5, 7)])
@pytest.mark.parametrize("kind", [Averaging, AveragingLast])
def test_averages_in_c_are_torchs(
    window: tuple[int, int], kind: type[Averaging | AveragingLast]
) -> None:
    x = torch.randn(3, 4, 11, 9, dtype=torch.float64).requires_grad_()
    functions = functions_for(x)
    assert functions
    made = kind(functions, x.shape, window)
    expected = F.avg_pool2d(x, window)
    g = torch.randn_like(expected)
    torch.testing.assert_close(made.average(x.detach())[0], expected)
    (back,) = torch.autograd.grad(expected, x, g)
    torch.testing.assert_close(made.spread_out(g)[0], back)
    with pytest.raises(ValueError, match="got"):
        made.average(g)


@needs_compiler
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("kind", ["groups", "instances", "channels", "rows", "short rows"])
@pytest.mark.parametrize("channels_last", [False, True])
def test_normalisation_in_c_has_torchs_derivatives(
    kind: str, dtype: torch.dtype, channels_last: bool
) -> None:
    if channels_last and "rows" in kind:
        pytest.skip("not images")
    shape = {"rows": (5, 2, 33), "short rows": (6, 3)}.get(kind, (5, 6, 5, 7))
    x = torch.randn(shape, dtype=dtype).requires_grad_()
    calls: dict[str, tuple[Rows, Callable[[Tensor, Tensor, Tensor], Tensor], int]] = {
        "groups": (Rows.of_groups(shape, 3), lambda x, w, b: F.group_norm(x, 3, w, b), 6),
        "instances": (
            Rows.of_groups(shape, 6),
            lambda x, w, b: F.instance_norm(x, None, None, w, b),
            6,
        ),
        "channels": (
            Rows.of_channels(shape),
            lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
            6,
        ),
    }
    last = shape[-1]
    rows, torchs, count = calls.get(
        kind, (Rows.of_last(shape, 1), lambda x, w, b: F.layer_norm(x, (last,), w, b), last)
    )
    functions = functions_for(x)
    assert functions
    made = Normalisation(functions, rows, 1e-5)
    if channels_last:
        groups = {"groups": 3, "instances": 6}.get(kind)
        made = NormalisationLast(functions, x.shape, groups, 1e-5)
    w, b = (torch.randn(count, dtype=dtype).requires_grad_() for _ in range(2))
    y = torchs(x, w, b)
    g = torch.randn_like(y).requires_grad_()
    first = torch.autograd.grad(y, [x, w, b], g, create_graph=True)
    v = [torch.randn_like(one) for one in first]
    second = torch.autograd.grad(first, [g, x, w], v)
    with torch.no_grad():
        found, statistics = made.forward(x, w, b)
        back = made.back(g, x, statistics, w)
        twice = made.twice(v[0], v[1], v[2], g, x, statistics, w)
    for own, expected in zip([found, *back, *twice], [y, *first, *second], strict=True):
        tolerance = 1e-12 if dtype == torch.float64 else 2e-5
        assert relative_error(own, expected.detach()) < tolerance


@needs_compiler
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(("size", "beta"), [(4, 0.75), (5, 0.75), (3, 0.6), (9, 0.75)])
def test_response_normalisation_in_c_has_torchs_derivatives(
    size: int, beta: float, dtype: torch.dtype
) -> None:
    x = last(3 * torch.randn(3, 7, 4, 5, dtype=dtype)).requires_grad_()
    functions = functions_for(x)
    assert functions
    made = Response(functions, x.shape, size, 0.3, beta, 1.5)
    y = F.local_response_norm(x, size, 0.3, beta, 1.5)
    g = torch.randn_like(y).requires_grad_()
    (first,) = torch.autograd.grad(y, x, g, create_graph=True)
    v = torch.randn_like(first)
    second = torch.autograd.grad(first, [g, x], v)
    with torch.no_grad():
        found, sums = made.forward(x)
        back, twice = made.back(g, x, sums), made.twice(v, g, x, sums)
    for own, expected in zip([found, *back, *twice], [y, first, *second], strict=True):
        tolerance = 1e-12 if dtype == torch.float64 else 2e-5
        assert relative_error(own, expected.detach()) < tolerance
    with pytest.raises(ValueError, match="got"):
        made.forward(x[:2])


MOVES = {
    "usual": (Settings((1, 1), (1, 1), (1, 1), 1), (3, 3)),
    "strided": (Settings((2, 3), (0, 2), (1, 1), 1), (2, 5)),
    "dilated": (Settings((1, 2), (2, 1), (2, 3), 1), (3, 2)),
    "more padding than kernel": (Settings((2, 1), (4, 3), (1, 1), 1), (2, 2)),
}


@needs_compiler
@pytest.mark.parametrize("by_rows", [False, True])
@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("name", MOVES)
def test_windows_in_c_are_those_that_torch_unfolds(
    name: str, channels_last: bool, by_rows: bool
) -> None:
    (stride, padding, dilation, _), kernel = MOVES[name]
    x = torch.randn(2, 5, 9, 11, dtype=torch.float64)
    x = last(x) if channels_last else x
    functions = functions_for(x)
    assert functions
    expected = F.unfold(x, kernel, dilation, padding, stride)
    maps = F.conv2d(x, torch.zeros(1, 5, *kernel).to(x), None, stride, padding, dilation).shape[2:]
    made = Windows(
        functions,
        x.shape,
        kernel,
        (stride, padding, dilation),
        (maps[0], maps[1]),
        by_rows=by_rows,
    )
    matrix = made.of(x)
    assert torch.equal(matrix, expected.transpose(1, 2).flatten(0, 1))
    back = F.fold(expected, (9, 11), kernel, dilation, padding, stride)
    torch.testing.assert_close(made.back(matrix), back)
    with pytest.raises(ValueError, match="got"):
        made.of(x[:1])


@pytest.mark.parametrize("engine", ["fast", "torch"])
@pytest.mark.parametrize("channels", [(3, 8), (16, 8), (8, 128)])  # few, many, few pixels
@pytest.mark.parametrize("name", MOVES)
def test_wide_convolutions_are_torchs_and_keep_channels_last(
    name: str, channels: tuple[int, int], engine: EngineName
) -> None:
    settings, kernel = MOVES[name]
    stride, padding, dilation, groups = settings
    x = torch.randn(2, channels[0], 9, 11, dtype=torch.float64).requires_grad_()
    w = torch.randn(channels[1], channels[0], *kernel, dtype=torch.float64).requires_grad_()
    b = torch.randn(channels[1], dtype=torch.float64).requires_grad_()
    with using(engine):
        made = WideConvolution(x.shape, w.shape, settings, x)
    y = F.conv2d(x, w, b, stride, padding, dilation, groups)
    g = torch.randn_like(y)
    back = torch.autograd.grad(y, [x, w, b], g)
    with torch.no_grad():
        one = [given.detach().unsqueeze(0) for given in (x, w, b)]
        found = made.forward(one[0], one[1], one[2])
        of_x = made.images(g.unsqueeze(0), one[1])
        of_w, of_b = made.weights(one[0], g.unsqueeze(0))
    assert is_last(found[0])
    assert of_w.is_contiguous()
    for own, expected in zip((found, of_x, of_w, of_b), (y, *back), strict=True):
        assert relative_error(own[0], expected.detach()) < 1e-12


def test_the_collector_rests_while_updates_run_and_is_as_it_was_afterwards() -> None:
    assert gc.isenabled()
    with uncollected():
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_sums_are_added_to_products_and_zeros_to_nothing_unless_they_are_changed() -> None:
    a, b = torch.randn(2, 3, 4), torch.randn(2, 4, 3)

    def given(a: Tensor, b: Tensor) -> Tensor:
        changed = a.new_zeros(2, 3, 3)
        changed[0].copy_(a[0] @ b[0])
        nothing = torch.baddbmm(a.new_zeros(2, 1, 3), a, b)
        return (nothing + torch.bmm(2 * a, b)) + torch.zeros(2, 3, 3) + changed

    made = make_fx(given)(a, b)
    simplify(made.graph)
    made.recompile()
    torch.testing.assert_close(made(a, b), given(a, b))
    names = [node.name for node in made.graph.nodes if node.op == "call_function"]
    assert sum("zeros" in name for name in names) == 1, "only those that are changed"
    called = [getattr(node.target, "__name__", "") for node in made.graph.nodes]
    assert "bmm" in called
    assert "baddbmm_" in called
    assert "baddbmm" not in called
