from typing import get_args

import pytest
import torch
from torch import Tensor, nn

from datadistill.core.initialization import FixedInit, RandomInit, networks_for
from datadistill.core.names import Scheme
from datadistill.core.network import Network
from datadistill.core.own_scheme import remember
from datadistill.core.random import stream
from datadistill.errors import ConfigError, ModelError
from datadistill.models import LeNet

EXAMPLE = torch.zeros(2, 1, 28, 28)


@pytest.fixture(scope="module")
def network() -> Network:
    return Network(LeNet(), EXAMPLE)


@pytest.mark.parametrize("scheme", get_args(Scheme))
def test_a_network_depends_on_its_number_alone(network: Network, scheme: Scheme) -> None:
    init = RandomInit(scheme)
    together = init.sample(network, networks_for(1, "network", range(4)))
    alone = init.sample(network, networks_for(1, "network", [2]))
    torch.manual_seed(5)
    again = init.sample(network, networks_for(1, "network", [2]))
    for name, weights in together.items():
        assert weights.shape == (4, *network.weights[name].shape)
        assert torch.equal(weights[2], alone[name][0])
        assert torch.equal(alone[name], again[name])
    assert not torch.equal(together["fc1.weight"][0], together["fc1.weight"][1])


@pytest.mark.parametrize(
    ("scheme", "deviation"),
    [
        ("xavier-normal", (2 / (400 + 120)) ** 0.5),
        ("xavier-uniform", (2 / (400 + 120)) ** 0.5),
        ("he-normal", (2 / 400) ** 0.5),
        ("he-uniform", (2 / 400) ** 0.5),
        ("orthogonal", (1 / 400) ** 0.5),
        ("module", (1 / (3 * 400)) ** 0.5),
    ],
)
def test_weights_have_the_deviation_of_their_scheme(
    network: Network, scheme: Scheme, deviation: float
) -> None:
    drawn = RandomInit(scheme).sample(network, networks_for(0, "network", range(8)))
    assert float(drawn["fc1.weight"].std()) == pytest.approx(deviation, rel=0.02)
    assert bool(drawn["fc1.bias"].any()) == (scheme == "module")


def test_orthogonal_rows_are_orthogonal(network: Network) -> None:
    drawn = RandomInit("orthogonal").sample(network, [stream(0, "network", 0)])
    rows = drawn["fc1.weight"][0]
    torch.testing.assert_close(rows @ rows.T, torch.eye(120), atol=1e-5, rtol=0)


def test_scales_of_normalisation_layers_stay_as_they_are() -> None:
    module = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.PReLU(), nn.Flatten())
    module.append(nn.Linear(4 * 26 * 26, 2))
    network = Network(module, EXAMPLE)
    drawn = RandomInit("he-normal").sample(network, [stream(0, "network", 0)])
    assert torch.equal(drawn["1.weight"][0], torch.ones(4))
    assert torch.equal(drawn["2.weight"][0], torch.tensor([0.25]))
    assert not drawn["1.bias"].any()


def test_the_modules_own_scheme_draws_what_the_module_draws() -> None:
    network = Network(nn.Sequential(nn.Flatten(), nn.Linear(784, 3)), EXAMPLE)
    generator = stream(3, "network", 1)
    drawn = RandomInit("module").sample(network, [generator])
    with torch.random.fork_rng():
        torch.manual_seed(generator.initial_seed())
        expected = nn.Linear(784, 3)
    assert torch.equal(drawn["1.weight"][0], expected.weight)
    assert torch.equal(drawn["1.bias"][0], expected.bias)


class Scaled(nn.Module):
    """A parameter of its own, drawn by the constructor."""

    def __init__(self, deviation: float) -> None:
        super().__init__()
        self.scale = nn.Parameter(deviation * torch.randn(784, 2))

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1) @ self.scale


class ScaledByDefault(Scaled):
    def __init__(self, deviation: float = 0.1) -> None:
        super().__init__(deviation)


def test_the_modules_own_scheme_makes_the_class_again() -> None:
    network, generator = Network(ScaledByDefault(), EXAMPLE), stream(3, "network", 1)
    state = torch.get_rng_state()
    drawn = RandomInit("module").sample(network, [generator, stream(3, "network", 2)])
    assert torch.equal(state, torch.get_rng_state())
    with torch.random.fork_rng():
        torch.manual_seed(generator.initial_seed())
        expected = ScaledByDefault()
    assert torch.equal(drawn["scale"][0], expected.scale)
    assert not torch.equal(drawn["scale"][0], drawn["scale"][1])


def test_the_modules_own_scheme_makes_the_class_as_it_was_made() -> None:
    module = Scaled(0.3)
    remember(module, lambda: Scaled(0.3))
    drawn = RandomInit("module").sample(Network(module, EXAMPLE), [stream(0, "network", 0)])
    assert float(drawn["scale"].std()) == pytest.approx(0.3, rel=0.1)


def test_the_modules_own_scheme_refuses_parameters_it_cannot_draw() -> None:
    with pytest.raises(ModelError, match="reset_parameters"):
        RandomInit("module").sample(Network(Scaled(0.1), EXAMPLE), [stream(0, "network", 0)])


def test_the_modules_own_scheme_refuses_what_another_generator_draws() -> None:
    own = torch.Generator()

    class Elsewhere(ScaledByDefault):
        def __init__(self) -> None:
            super().__init__(float(torch.rand((), generator=own)))

    with pytest.raises(ModelError, match="two different weights"):
        RandomInit("module").sample(Network(Elsewhere(), EXAMPLE), [stream(0, "network", 0)])


def test_the_weights_of_a_module_are_a_fixed_initialization(network: Network) -> None:
    module = LeNet()
    init = FixedInit.of(module)
    assert init.record()["source"] == "weights of LeNet"
    expected = {name: p.detach().clone() for name, p in module.named_parameters()}
    with torch.no_grad():
        module.fc1.weight.zero_()  # they are copied
    drawn = init.sample(network, networks_for(0, "anything", range(2)))
    assert all(torch.equal(w[1], expected[name]) for name, w in drawn.items())
    with pytest.raises(ModelError, match=r"'conv1.weight' is \[6, 3, 5, 5\]"):
        FixedInit.of(LeNet(channels=3)).sample(network, [stream(0, "anything", 0)])


def test_drawing_leaves_the_global_random_state_alone(network: Network) -> None:
    state = torch.get_rng_state()
    for scheme in get_args(Scheme):
        RandomInit(scheme).sample(network, [stream(0, "network", 0)])
    assert torch.equal(state, torch.get_rng_state())


def test_every_dtype_starts_from_the_same_numbers(network: Network) -> None:
    double = Network(LeNet(), EXAMPLE, dtype=torch.float64)
    drawn = RandomInit().sample(double, [stream(0, "network", 0)])
    for name, weights in RandomInit().sample(network, [stream(0, "network", 0)]).items():
        assert torch.equal(drawn[name], weights.double())


def test_a_fixed_initialization_is_one_network(network: Network) -> None:
    init = FixedInit(seed=4, scheme="he-uniform")
    drawn = init.sample(network, networks_for(0, "anything", range(3)))
    assert all(torch.equal(w[0], w[2]) for w in drawn.values())
    other = FixedInit(seed=5, scheme="he-uniform").sample(network, [stream(0, "anything", 0)])
    assert not torch.equal(drawn["fc1.weight"][0], other["fc1.weight"][0])
    own = FixedInit(weights=network.weights).sample(network, [stream(0, "anything", 0)])
    assert all(torch.equal(w[0], network.weights[name]) for name, w in own.items())


def test_an_unknown_scheme_is_refused() -> None:
    with pytest.raises(ConfigError, match="xavier-normal"):
        RandomInit("xavier")  # pyright: ignore[reportArgumentType]
