"""Micro-batches: parts of a batch give the gradient of the whole."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from datadistill.core.adjoint import Adjoint, BackGradient, StoredGraph, Truncated
from datadistill.core.distilled import Steps
from datadistill.core.distiller import Distiller
from datadistill.core.initialization import FixedInit
from datadistill.core.network import Network, Weights
from datadistill.core.objective import Classification, Objective, Poisoning, Regression
from datadistill.core.settings import DistillerConfig
from datadistill.core.update import GradientDescent, Momentum, UpdateRule
from datadistill.engine import FastEngine
from datadistill.engine.micro_batches import losses_in_parts
from datadistill.errors import ConfigError, ModelError
from datadistill.models import SqueezeNet
from datadistill.runs import RunConfig
from tests.helpers import Branches, Convolutional, problem

CLOSE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-13}


@pytest.mark.parametrize("adjoint", [BackGradient(), BackGradient(2), Truncated(2)], ids=repr)
@pytest.mark.parametrize("rule", [GradientDescent(), Momentum(0.9)], ids=lambda rule: rule.name)
@pytest.mark.parametrize("own", [False, True])
def test_a_step_in_parts_is_the_step(adjoint: Adjoint, rule: UpdateRule, own: bool) -> None:
    given = problem("convolutional", steps=2, epochs=2, networks=2, rule=rule)
    steps = given.steps.for_each(2) if own else given.steps
    expected = given.differentiate(adjoint, steps)
    parts = FastEngine(given.network, given.objective, micro_batch=2)  # of 3 images
    found = given.differentiate(adjoint, steps, parts)
    torch.testing.assert_close(found[0], expected[0], **CLOSE)
    for one, other in zip(_leaves(found[1]), _leaves(expected[1]), strict=True):
        torch.testing.assert_close(one, other, **CLOSE)


@pytest.mark.parametrize("objective", ["classification", "binary", "regression"])
def test_the_outer_loss_in_parts_is_the_loss(objective: str) -> None:
    given = problem("mlp", objective, networks=2)

    def losses(weights: Weights, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return given.network.losses(weights, x, y, given.objective.outer_loss)

    def gradient(images: int | None) -> tuple[torch.Tensor, ...]:
        weights = {n: w.clone().requires_grad_() for n, w in given.theta0.items()}
        each = (
            losses_in_parts(losses, weights, *given.batch, images)
            if images
            else losses(weights, *given.batch)
        )
        factors = torch.tensor([1.0, -2.0], dtype=torch.float64)
        return each, *torch.autograd.grad((factors * each).sum(), [*weights.values()])

    for images in (1, 2, 7):
        torch.testing.assert_close(gradient(images), gradient(None), **CLOSE)


@pytest.mark.parametrize(
    "objective", [Classification(), Regression(), Poisoning(0, 1)], ids=lambda o: o.name
)
def test_a_distillation_in_micro_batches_has_the_same_gradient(objective: Objective) -> None:
    random = torch.Generator().manual_seed(0)
    inputs = torch.randn(7, 1, 6, 6, generator=random).double()
    labels = torch.arange(7) % 3
    if isinstance(objective, Regression):
        labels = torch.randn(7, 3, generator=random).double()
    network = Network(Branches(3), inputs, dtype=torch.float64)
    config = DistillerConfig(steps=1, epochs=3, images_per_class=5, learning_rate=0.2)
    fast, in_parts = (FastEngine(network, objective, micro_batch=m) for m in (None, 2))
    assert fast.vectorised.stacked is None  # or it would take parts of its own accord
    whole = Distiller(network, FixedInit(1), objective, config, own_engine=fast)
    parts = dataclasses.replace(whole, own_engine=in_parts)
    state = whole.init(inputs.shape[1:], labels)
    expected = whole.gradient(state, (inputs, labels))
    torch.testing.assert_close(parts.gradient(state, (inputs, labels)), expected, **CLOSE)


def test_micro_batches_of_squeezenet_at_224_px_give_the_gradient_of_the_whole() -> None:
    random = torch.Generator().manual_seed(0)
    inputs = torch.randn(3, 3, 224, 224, generator=random).double()
    labels = torch.arange(3) % 2
    network = Network(SqueezeNet(classes=2, width=16), inputs, dtype=torch.float64)
    config = DistillerConfig(steps=1, epochs=1, learning_rate=0.1)
    fast, in_parts = (FastEngine(network, Classification(), micro_batch=m) for m in (None, 1))
    whole = Distiller(network, FixedInit(1), Classification(), config, own_engine=fast)
    parts = dataclasses.replace(whole, own_engine=in_parts)
    state = whole.init(inputs.shape[1:], labels)
    expected = whole.gradient(state, (inputs, labels))
    torch.testing.assert_close(parts.gradient(state, (inputs, labels)), expected, **CLOSE)
    assert expected[1]["inputs"].abs().max() > 0


def test_networks_that_mix_images_and_stored_graphs_are_refused() -> None:
    inputs = torch.randn(4, 1, 6, 6)
    mixing = nn.Sequential(nn.Flatten(), nn.Linear(36, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
    with pytest.raises(ModelError, match="mixes the images of a batch"):
        FastEngine(Network(mixing, inputs), Classification(), micro_batch=2)
    with pytest.raises(ConfigError, match="micro_batch is 0"):
        RunConfig(micro_batch=0)
    with pytest.raises(ConfigError, match="micro_batch cannot be combined with stored-graph"):
        RunConfig(micro_batch=2, adjoint="stored-graph")


class Squared(Classification):
    """A user's own inner loss that is no mean over images."""

    def inner_loss(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return super().inner_loss(outputs, labels) ** 2


def test_an_inner_loss_that_is_no_mean_is_refused() -> None:
    network = Network(Branches(3), torch.randn(4, 1, 6, 6))
    with pytest.raises(
        ConfigError, match=r"test_micro_batches:Squared does not say .*\nWrite is_mean"
    ):
        FastEngine(network, Squared(), micro_batch=2)
    FastEngine(network, Squared())


@pytest.mark.parametrize("make", [Branches, Convolutional], ids=["unknown layers", "known layers"])
def test_a_stored_graph_in_micro_batches_is_refused_and_not_cut_silently(
    make: Callable[[int], nn.Module],
) -> None:
    inputs, labels = torch.randn(6, 1, 6, 6), torch.arange(6) % 3
    network, objective = Network(make(3), inputs), Classification()
    made = Distiller(
        network,
        FixedInit(),
        objective,
        DistillerConfig(steps=1, epochs=2),
        StoredGraph(),
        own_engine=FastEngine(network, objective, micro_batch=2),
    )
    state = made.init(inputs.shape[1:], labels)
    with pytest.raises(
        ConfigError, match=r"micro_batch cannot .*\nChoose the back-gradient"
    ) as caught:
        made.step(state, (inputs, labels))
    assert str(caught.value).count("\n") == 1
    dataclasses.replace(made, adjoint=BackGradient()).step(state, (inputs, labels))


def _leaves(steps: Steps) -> tuple[torch.Tensor, ...]:
    return steps.inputs, steps.labels, steps.learning_rates
