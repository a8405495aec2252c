import copy
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from datadistill.core.network import Network
from datadistill.errors import ModelError
from tests.helpers import NETWORKS, Convolutional, FrozenBody, SharedWeights

EXAMPLE = torch.randn(4, 1, 6, 6, generator=torch.Generator().manual_seed(0))


def stacked(network: Network, count: int) -> dict[str, Tensor]:
    random = torch.Generator().manual_seed(1)
    one = [
        {n: torch.randn(w.shape, generator=random).to(w.dtype) for n, w in network.weights.items()}
        for _ in range(count)
    ]
    return network.stack(one)


@pytest.mark.parametrize("name", NETWORKS)
def test_outputs_side_by_side_are_those_of_plain_modules(name: str) -> None:
    network = Network(NETWORKS[name](3), EXAMPLE)
    weights = stacked(network, 3)
    outputs = network(weights, EXAMPLE)
    assert network.side_by_side
    assert network.outputs == (3,)
    for j in range(3):
        module = network.module({n: w[j] for n, w in weights.items()})
        torch.testing.assert_close(outputs[j], module(EXAMPLE))


class RegisteredTwice(nn.Module):
    """A layer under two names, as ``self.first`` and inside a ``Sequential``."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(36, 5)
        self.layers = nn.Sequential(nn.Flatten(), self.first, nn.Tanh(), nn.Linear(5, 3))

    def forward(self, images: Tensor) -> Tensor:
        return self.layers(images)


def test_a_layer_that_is_registered_twice_is_one_layer_and_stays_whole() -> None:
    network = Network(RegisteredTwice(), EXAMPLE)
    assert list(network.weights) == [
        "first.weight",
        "first.bias",
        "layers.3.weight",
        "layers.3.bias",
    ]
    weights = stacked(network, 3)
    outputs = network(weights, EXAMPLE)
    assert network.side_by_side
    for j in range(3):
        module = network.module({n: w[j] for n, w in weights.items()})
        torch.testing.assert_close(outputs[j], module(EXAMPLE))


def test_a_shared_weight_is_one_weight_and_stays_shared() -> None:
    network = Network(SharedWeights(3), EXAMPLE)
    assert "first.weight" in network.weights
    assert "second.weight" not in network.weights
    module = network.module({n: w + 1 for n, w in network.weights.items()})
    assert module.get_parameter("first.weight") is module.get_parameter("second.weight")


def test_frozen_weights_and_buffers_are_constants() -> None:
    assert set(Network(FrozenBody(2), EXAMPLE).weights) == {"head.weight", "head.bias"}
    assert set(Network(FrozenBody(2), EXAMPLE).constants) == {"body.weight", "body.bias"}
    assert set(Network(SharedWeights(2), EXAMPLE).constants) == {"scale"}


def test_several_dtypes_in_one_module_are_kept() -> None:
    class Mixed(nn.Module):
        table: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(36, 4)
            self.second = nn.Linear(4, 2).double()
            self.register_buffer("table", torch.tensor([1, 0]))

        def forward(self, x: Tensor) -> Tensor:
            return self.second(torch.tanh(self.first(x.flatten(1))).double())[:, self.table]

    network = Network(Mixed(), EXAMPLE)
    weights = stacked(network, 2)
    assert {w.dtype for w in weights.values()} == {torch.float32, torch.float64}
    assert network(weights, EXAMPLE).dtype == torch.float64


def test_the_original_module_and_the_global_random_state_are_untouched() -> None:
    module = nn.Sequential(nn.Flatten(), nn.Linear(36, 3), nn.Dropout(), nn.BatchNorm1d(3)).train()
    before, state = copy.deepcopy(module.state_dict()), torch.get_rng_state()
    network = Network(module, EXAMPLE)
    network(stacked(network, 2), EXAMPLE)
    assert torch.equal(state, torch.get_rng_state())
    assert module.training
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name])


def test_dropout_is_off_in_every_form() -> None:
    class Dropping(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(36, 3)
            self.layer = nn.Dropout(0.5)

        def forward(self, x: Tensor) -> Tensor:
            return F.dropout(self.layer(self.fc(x.flatten(1))), training=self.training)

    network = Network(Dropping().train(), EXAMPLE)
    outputs = network(network.stack([network.weights]), EXAMPLE)[0]
    expected = F.linear(
        EXAMPLE.flatten(1), network.weights["fc.weight"], network.weights["fc.bias"]
    )
    torch.testing.assert_close(outputs, expected)


@pytest.mark.parametrize("norm", [nn.BatchNorm2d, nn.InstanceNorm2d])
def test_normalisation_uses_the_statistics_of_the_batch(norm: Callable[..., nn.Module]) -> None:
    layer = norm(1, affine=True, track_running_stats=True)
    network = Network(nn.Sequential(layer, nn.Flatten(), nn.Linear(36, 2)), EXAMPLE)
    inputs = 5 * EXAMPLE + 3
    found = network(network.stack([network.weights]), inputs)[0]
    axes = (0, 2, 3) if norm is nn.BatchNorm2d else (2, 3)
    centred = inputs - inputs.mean(axes, keepdim=True)
    normed = centred / (inputs.var(axes, correction=0, keepdim=True) + 1e-5).sqrt()
    expected = F.linear(normed.flatten(1), network.weights["2.weight"], network.weights["2.bias"])
    torch.testing.assert_close(found, expected)
    assert not network.constants


class Buffered(nn.Module):
    count: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(36, 2)
        self.register_buffer("count", torch.zeros(()))


class CountsInPlace(Buffered):
    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        return self.fc(x.flatten(1))


class Rebinds(Buffered):
    def forward(self, x: Tensor) -> Tensor:
        self.count = self.count + 1
        return self.fc(x.flatten(1))


class CountsInTraining(Buffered):
    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.count += 1
        return self.fc(x.flatten(1)) / (1 + self.count)


class Noisy(Buffered):
    def forward(self, x: Tensor) -> Tensor:
        return self.fc(x.flatten(1)) + torch.randn(2)


class Remembers(Buffered):
    calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return self.fc(x.flatten(1)) * self.calls


class Detached(Buffered):
    def forward(self, x: Tensor) -> Tensor:
        return self.fc(x.flatten(1)).detach()


class OnceOnly(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grad_outputs: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        (x,) = ctx.saved_tensors
        return grad_outputs[0] * x.exp()


class NoSecondDerivative(Buffered):
    def forward(self, x: Tensor) -> Tensor:
        return OnceOnly.apply(self.fc(x.flatten(1)))  # pyright: ignore


class Pair(Buffered):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.fc(x.flatten(1)), x


class Scalar(Buffered):
    def forward(self, x: Tensor) -> Tensor:
        return self.fc(x.flatten(1)).mean()


class Raises(Buffered):
    def forward(self, x: Tensor) -> Tensor:
        raise ArithmeticError("no sums today")


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (CountsInPlace(), r"changes its buffer 'count'"),
        (Rebinds(), r"changes its buffer 'count'"),
        (CountsInTraining(), r"changes its buffer 'count'"),
        (Noisy(), r"draws random numbers"),
        (Remembers(), r"two different outputs"),
        (Detached(), r"do not depend on its trainable weights"),
        (NoSecondDerivative(), r"no second derivative"),
        (Pair(), r"returns tuple"),
        (Scalar(), r"output of shape \(\)"),
        (Raises(), r"raised ArithmeticError.*no sums today"),
        (nn.Sequential(nn.Flatten(), nn.LazyLinear(2)), r"lazy layer"),
        (nn.Flatten(), r"no trainable weights"),
        (nn.Linear(7, 2), r"inputs of shape \(2, 1, 6, 6\)"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_module_that_cannot_be_a_pure_function_is_refused(
    module: nn.Module, message: str
) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Lazy modules")
        with pytest.raises(ModelError, match=message) as caught:
            Network(module, EXAMPLE)
    assert caught.value.remedy


def test_an_error_of_the_cpu_library_is_not_blamed_on_the_inputs() -> None:
    class Unlucky(Buffered):
        def forward(self, x: Tensor) -> Tensor:
            raise RuntimeError("could not create a primitive")  # as oneDNN says it

    with pytest.raises(ModelError, match="could not create a primitive") as caught:
        Network(Unlucky(), EXAMPLE)
    assert "ONEDNN_MAX_CPU_ISA" in caught.value.remedy


def test_a_module_that_cannot_be_vectorised_is_computed_network_by_network() -> None:
    class Branches(nn.Module):
        """Looks at the values of its weights, which vmap forbids."""

        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(36, 2)

        def forward(self, x: Tensor) -> Tensor:
            sign = 1.0 if float(self.fc.weight.detach().sum()) > 0 else -1.0
            return sign * torch.tanh(self.fc(x.flatten(1)))

    network = Network(Branches(), EXAMPLE)
    weights = stacked(network, 3)
    assert not network.side_by_side
    outputs = network(weights, EXAMPLE)
    for j in range(3):
        module = network.module({n: w[j] for n, w in weights.items()})
        torch.testing.assert_close(outputs[j], module(EXAMPLE))


def test_dtype_and_device_are_settings(device: str) -> None:
    dtype = torch.float32 if device == "mps" else torch.float64
    network = Network(Convolutional(3), EXAMPLE, device=torch.device(device), dtype=dtype)
    outputs = network(stacked(network, 2), EXAMPLE.to(device, dtype))
    assert (outputs.device.type, outputs.dtype) == (device, dtype)
