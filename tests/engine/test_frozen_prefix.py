"""Frozen layers: they are not unrolled, and the gradient is that of the whole network."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

from datadistill.core.distiller import Distiller, DistillerState
from datadistill.core.initialization import RandomInit, networks_for
from datadistill.core.network import Network
from datadistill.core.objective import Classification
from datadistill.core.parametrisation import Parametrisation, Plain, SoftLabels
from datadistill.core.settings import DistillerConfig
from datadistill.core.update import Adam, GradientDescent, Momentum, UpdateRule
from datadistill.engine import FastEngine
from datadistill.engine.frozen_prefix import FrozenFeatures, FrozenPrefix, Split, split_frozen
from tests.helpers import Branches, Convolutional, FrozenBody, SharedWeights, nested_autograd

LABELS = torch.arange(12) % 3
INPUTS = torch.randn(12, 1, 6, 6, generator=torch.Generator().manual_seed(0)).double()


def branching() -> nn.Module:
    """Frozen convolutions whose results are put together, as in SqueezeNet, then learned ones."""
    with torch.random.fork_rng():
        torch.manual_seed(0)  # with some weights the slope is nothing but rounding
        frozen = Branches(8).requires_grad_(False)
    return nn.Sequential(frozen, nn.Tanh(), nn.Linear(8, 5), nn.Tanh(), nn.Linear(5, 3))


def cut(module: nn.Module) -> tuple[Network, Split]:
    network = Network(module, INPUTS, dtype=torch.float64)
    found = split_frozen(network)
    assert found
    return network, found


class Case(NamedTuple):
    """What differs between distillations."""

    networks: int = 2
    rule: UpdateRule = GradientDescent()
    parametrisation: Parametrisation = Plain()
    clip_norm: float | None = None
    micro_batch: int | None = None


def distillers(module: nn.Module, case: Case) -> tuple[Distiller, Distiller, FrozenPrefix]:
    """The same distillation with the whole network, and with the network in two."""
    network, found = cut(module)
    config = DistillerConfig(
        steps=2, epochs=3, learning_rate=0.3, networks=case.networks, clip_norm=case.clip_norm
    )

    def made(network: Network, parametrisation: Parametrisation) -> Distiller:
        engine = FastEngine(network, Classification(), micro_batch=case.micro_batch)
        return Distiller(
            network,
            RandomInit(),
            Classification(),
            config,
            rule=case.rule,
            parametrisation=parametrisation,
            own_engine=engine,
        )

    whole = made(network, case.parametrisation)
    head = made(found.head, FrozenFeatures(case.parametrisation, found.prefix))
    return whole, head, found.prefix


def start(made: Distiller) -> DistillerState:
    return made.init(INPUTS.shape[1:], LABELS)


@pytest.mark.parametrize("make", [lambda: FrozenBody(3), branching], ids=["linear", "branching"])
@pytest.mark.parametrize(
    "case",
    [
        Case(),
        Case(rule=Momentum(0.9)),
        Case(rule=Adam()),
        Case(clip_norm=1e-3),
        Case(parametrisation=SoftLabels()),
        Case(micro_batch=2),
    ],
    ids=str,
)
def test_the_gradient_of_a_split_network_is_that_of_the_whole(
    make: Callable[[], nn.Module], case: Case
) -> None:
    whole, made, prefix = distillers(make(), case)
    expected = whole.gradient(start(whole), (INPUTS, LABELS))
    found = made.gradient(start(made), (prefix(INPUTS), LABELS))
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-14)
    assert expected[1]["inputs"].abs().max() > 1e-6


def test_it_is_that_of_finite_differences_and_of_an_independent_unroll() -> None:
    whole, made, prefix = distillers(branching(), Case(networks=1))
    state, batch = start(made), (prefix(INPUTS), LABELS)
    losses, gradient = made.gradient(state, batch)

    def loss_at(inputs: Tensor) -> float:
        moved = dataclasses.replace(state, parameters={**state.parameters, "inputs": inputs})
        return float(made.gradient(moved, batch)[0])

    inputs = state.parameters["inputs"]
    direction = torch.randn(inputs.shape, generator=torch.Generator().manual_seed(1)).double()
    slope = (loss_at(inputs + 1e-5 * direction) - loss_at(inputs - 1e-5 * direction)) / 2e-5
    assert slope == pytest.approx(float((gradient["inputs"] * direction).sum()), rel=1e-7)

    theta0 = whole.initialization.sample(whole.network, networks_for(0, "network", [0]))
    images = whole.distilled(state)
    steps = dataclasses.replace(images, labels=torch.eye(3).double()[images.labels])
    one = {name: w[0] for name, w in theta0.items()}
    outer, expected = nested_autograd(
        whole.network.module(), one, steps, (INPUTS, LABELS), "classification"
    )
    assert float(losses) == pytest.approx(float(outer), rel=1e-12)
    torch.testing.assert_close(gradient["inputs"], expected[0], rtol=1e-9, atol=1e-13)


def test_images_pass_the_frozen_layers_once_forward_and_once_to_come_back() -> None:
    _, made, prefix = distillers(branching(), Case(networks=3))
    passes: list[int] = []

    def count(_module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        passes.append(len(inputs[0]))

    state, batch = start(made), (prefix(INPUTS), LABELS)
    prefix._module.register_forward_pre_hook(count)  # pyright: ignore[reportPrivateUsage]
    _, together = made.gradient(state, batch)
    assert passes == [6, 6]  # however many networks and updates there are
    steps = made.parametrisation.steps(state.current)
    found = made.parametrisation.pull_back(state.current, steps)
    each = made.parametrisation.pull_back_each(state.current, steps.for_each(2))
    assert found.keys() == together.keys()
    for name, one in found.items():
        torch.testing.assert_close(each[name], torch.stack([one, one]))


def test_images_pass_the_frozen_layers_in_parts() -> None:
    _, found = cut(branching())
    v = torch.randn(2, 12, *found.prefix.shape, generator=torch.Generator().manual_seed(2)).double()
    assert found.prefix.part >= 12
    whole = found.prefix(INPUTS), found.prefix.pull_back(INPUTS, v)
    one = FrozenPrefix(found.prefix._module, INPUTS, part_bytes=1)  # pyright: ignore[reportPrivateUsage]
    assert one.part == 1
    torch.testing.assert_close((one(INPUTS), one.pull_back(INPUTS, v)), whole)


class AroundTheCorner(FrozenBody):
    def forward(self, x: Tensor) -> Tensor:
        hidden = self.body(x.flatten(1))
        return self.head(torch.tanh(hidden)) + hidden[:, :3] + x.flatten(1)[:, :3]


class Choosing(FrozenBody):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x if bool(x.sum() > 0) else x + 1)


def last_layer_frozen() -> nn.Module:
    module = Convolutional(3)
    module.fc.requires_grad_(False)
    return module


def normalised() -> nn.Module:
    frozen = nn.Sequential(nn.Flatten(), nn.Linear(36, 6), nn.BatchNorm1d(6)).requires_grad_(False)
    return nn.Sequential(frozen, nn.Linear(6, 3))


@pytest.mark.parametrize(
    "module",
    [
        Convolutional(3),  # nothing is frozen
        last_layer_frozen(),
        normalised(),  # the features of an image depend on those beside it
        AroundTheCorner(3),  # more than one frozen result is used later
        Choosing(3),  # cannot be traced
        SharedWeights(3).requires_grad_(True),
    ],
    ids=lambda module: type(module).__name__,
)
def test_other_networks_are_left_whole(module: nn.Module) -> None:
    assert split_frozen(Network(module, INPUTS, dtype=torch.float64)) is None
