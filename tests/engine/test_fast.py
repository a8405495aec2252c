"""However networks and examples are divided, the results are the same."""

from collections.abc import Callable, Generator
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from datadistill import models
from datadistill.core.distiller import Distiller
from datadistill.core.initialization import RandomInit, networks_for
from datadistill.core.network import Network
from datadistill.core.objective import Classification, Regression
from datadistill.core.settings import DistillerConfig
from datadistill.engine import FastEngine, vectorised
from datadistill.engine.graph_budget import CHAINED_GRAPH_BYTES, WIDE_GRAPH_BYTES
from datadistill.engine.groups import Groups
from datadistill.engine.vectorised import Vectorised
from tests.helpers import Branches, Convolutional, relative_error

MODULES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "lenet": (models.LeNet, (1, 28, 28)),
    "wide": (lambda: models.AlexCifarNet(3, 8, 10, width=40), (3, 8, 8)),
    "batch normalised": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(72, 10)
        ),
        (1, 8, 8),
    ),
}


@pytest.fixture(autouse=True)
def threads() -> Generator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def distiller(name: str, networks: int) -> tuple[Distiller, tuple[Tensor, Tensor]]:
    make, shape = MODULES[name]
    random = torch.Generator().manual_seed(0)
    inputs = torch.randn(23, *shape, generator=random, dtype=torch.float64)
    network = Network(make(), inputs, dtype=torch.float64)
    config = DistillerConfig(steps=2, epochs=2, networks=networks, learning_rate=0.1)
    engine = FastEngine(network, Classification())
    made = Distiller(network, RandomInit(), Classification(), config, own_engine=engine)
    return made, (inputs, torch.arange(23) % 10)


def gradient_of(name: str, networks: int) -> tuple[Tensor, dict[str, Tensor]]:
    made, batch = distiller(name, networks)
    return made.gradient(made.init(batch[0].shape[1:], batch[1]), batch)


def unknown(_: Network) -> None:
    """A network of which no layer is known."""


@pytest.mark.parametrize("networks", [1, 5])  # in groups of 5, of 3 and 2, of 2, 2 and 1
@pytest.mark.parametrize("name", MODULES)
def test_threads_parts_and_layers_change_nothing_but_rounding(
    name: str, networks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[tuple[Tensor, dict[str, Tensor]]] = []
    for count, part in ((1, 2**21), (2, 2**21), (3, 1)):
        torch.set_num_threads(count)
        monkeypatch.setattr(vectorised, "PART_BYTES", part)
        found.append(gradient_of(name, networks))
    monkeypatch.setattr(vectorised, "stacked", unknown)
    losses, gradient = gradient_of(name, networks)
    for other_losses, other in found:
        torch.testing.assert_close(other_losses, losses, rtol=1e-11, atol=0)
        for key, expected in gradient.items():
            size = float(expected.abs().max())
            torch.testing.assert_close(other[key], expected, rtol=1e-8, atol=1e-10 * size)


def test_networks_are_grouped_by_threads_and_wide_ones_taken_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch.set_num_threads(2)
    narrow, wide, mixed = (Vectorised(distiller(name, 1)[0].network) for name in MODULES)
    assert narrow.groups(5) == Groups(5, 3, 2)
    assert narrow.groups(1) == Groups(1, 1, 1)  # by one thread, not by two that wait
    assert wide.groups(5) == Groups(5, 1, 2)
    assert wide.groups(1) == Groups(1, 1, 0)
    assert mixed.groups(5) == Groups(5, 5, 0)  # its module serves one thread at a time
    assert mixed.groups(5, traced=True) == Groups(5, 5, 0)  # its operations are small
    monkeypatch.setattr(vectorised, "FEW_NUMBERS", 0)
    larger = Vectorised(mixed.network)
    assert larger.groups(5, traced=True) == Groups(5, 1, 0)  # without autograd that is faster
    assert narrow.groups(5, traced=True) == narrow.groups(5)
    torch.set_num_threads(1)
    assert narrow.groups(5) == Groups(5, 5, 0)
    assert wide.groups(5) == Groups(5, 1, 0)


def test_losses_in_parts_cannot_be_differentiated_twice_unnoticed() -> None:
    made, (inputs, labels) = distiller("lenet", 2)
    weights = made.initialization.sample(made.network, networks_for(0, "network", range(2)))
    leaves = {name: w.requires_grad_() for name, w in weights.items()}
    losses = Vectorised(made.network).mean_losses(leaves, inputs, labels, F.cross_entropy)
    (gradient,) = torch.autograd.grad(losses.sum(), leaves["conv1.bias"], create_graph=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        gradient.sum().backward()


def test_wide_networks_have_more_room_for_graphs_than_narrow_ones() -> None:
    def room(channels: int) -> int:
        convolution = nn.Conv2d(channels, channels, 3)
        module = nn.Sequential(convolution, nn.Flatten(), nn.Linear(channels, 2))
        network = Network(module, torch.randn(2, channels, 3, 3))
        engine = FastEngine(network, Classification())
        assert Vectorised(network).stacked is engine.vectorised.stacked  # found out once
        return engine._budget._all  # pyright: ignore[reportPrivateUsage]

    assert room(64) == WIDE_GRAPH_BYTES > room(2) == CHAINED_GRAPH_BYTES


class RootMeanSquare(Regression):
    """A user's own loss that is no mean over examples; its class does not say so."""

    def outer_loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        return super().outer_loss(outputs, labels).sqrt()


@pytest.mark.parametrize(
    ("make", "micro_batch"),
    [(Convolutional, None), (Convolutional, 2), (Branches, 2)],
    ids=["in parts of its own accord", "known layers in micro-batches", "in micro-batches"],
)
def test_a_users_own_loss_is_that_of_the_whole_minibatch(
    make: Callable[[int], nn.Module], micro_batch: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectorised, "PART_BYTES", 1)
    random = torch.Generator().manual_seed(0)
    inputs = torch.randn(40, 1, 6, 6, generator=random, dtype=torch.float64)
    targets = torch.randn(40, 2, generator=random, dtype=torch.float64)
    network, objective = Network(make(2), inputs, dtype=torch.float64), RootMeanSquare()
    config = DistillerConfig(steps=2, epochs=2, networks=2, images_per_class=3, learning_rate=0.1)
    plain = Distiller(network, RandomInit(), objective, config)
    engine = FastEngine(network, objective, micro_batch=micro_batch)
    state = plain.init(inputs.shape[1:], targets)
    losses, gradient = plain.gradient(state, (inputs, targets))
    found = replace(plain, own_engine=engine).gradient(state, (inputs, targets))
    # The defect: of parts, the mean of their roots is less than the root of their mean.
    assert relative_error(found[0], losses) < 1e-12
    for name, expected in gradient.items():
        assert relative_error(found[1][name], expected) < 1e-10, name
    weights = plain.initialization.sample(network, networks_for(0, "network", range(2)))
    parts = engine.vectorised.mean_losses(weights, inputs, targets, objective.outer_loss)
    if engine.vectorised.stacked:
        whole = network.losses(weights, inputs, targets, objective.outer_loss)
        assert relative_error(parts, whole) > 1e-4
