"""The catalogue of gradients, for what is not a part of a distiller that can be combined freely."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from datadistill.core.adjoint import BackGradient, Truncated
from datadistill.core.clipping import clipped, length
from datadistill.core.distiller import Batch, Distiller, DistillerState
from datadistill.core.engine import Engine
from datadistill.core.initialization import RandomInit
from datadistill.core.network import Network
from datadistill.core.objective import Classification
from datadistill.core.parametrisation import SoftLabels
from datadistill.core.settings import DistillerConfig
from datadistill.core.update import GradientDescent
from datadistill.core.update.loop import trained
from datadistill.core.view import View
from datadistill.data.whitening import Whitening
from tests.engine.test_catalogue import (
    DISTANCE,
    Case,
    Tree,
    assert_exact,
    directions,
    engines,
    prepare,
    slope,
)
from tests.helpers import relative_error

CASE: Case = (
    *("convolutional", "classification", "learned by layer", "soft labels", "back-gradient"),
    *("2 steps, 3 epochs", "J=3", "no view"),
)


def gradients(made: Distiller, state: DistillerState, batch: Batch) -> list[Tree]:
    """By the plain and by the fast engine, which agree."""
    plain, fast = (
        replace(made, own_engine=engine).gradient(state, batch)[1]
        for engine in engines(made).values()
    )
    for name, expected in plain.items():
        assert float(expected.norm()) > 1e-6
        assert relative_error(fast[name], expected) < 1e-10, name
    return [fast, plain]


@pytest.mark.parametrize("images_per_step", [1, 2])
def test_fewer_images_than_classes_have_exact_gradients(images_per_step: int) -> None:
    made, _, batch = prepare(CASE)
    made = replace(made, config=replace(made.config, steps=1, images_per_step=images_per_step))
    state = made.init(batch[0].shape[1:], batch[1])
    assert state.parameters["inputs"].shape[:2] == (1, images_per_step)
    assert_exact(made, state, batch, *gradients(made, state, batch))


@pytest.mark.parametrize("view", sorted(View.names()))
def test_views_of_colour_images_have_exact_gradients(view: str) -> None:
    """Images of one channel have no saturation."""
    random = torch.Generator().manual_seed(4)
    inputs = torch.randn(7, 3, 6, 6, generator=random).double()
    with torch.random.fork_rng():
        torch.manual_seed(3)
        layers = nn.Conv2d(3, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(64, 3)
    network = Network(nn.Sequential(*layers), inputs, dtype=torch.float64)
    config = DistillerConfig(steps=1, epochs=2, networks=2, learning_rate=0.2)
    parts = RandomInit(), Classification(), config, BackGradient(), GradientDescent(), SoftLabels()
    seen = View.from_record({"name": view})
    made, batch = Distiller(network, *parts, seen), (inputs, torch.arange(7) % 3)
    state = made.init(inputs.shape[1:], batch[1])
    plain = replace(made, view=None).gradient(state, batch)[1]
    moved = 0
    for outer_step in range(3):
        now = replace(state, outer_step=outer_step)
        found = gradients(made, now, batch)
        assert_exact(made, now, batch, *found)
        moved += relative_error(found[0]["inputs"], plain["inputs"]) > 1e-3
    assert moved


def test_whitened_images_have_exact_gradients() -> None:
    made, state, (inputs, labels) = prepare(CASE)
    random = torch.Generator().manual_seed(2)
    pixels = torch.randn(40, 1, 6, 6, generator=random).double().cumsum(-1)  # correlated
    whitening = Whitening.fitted([pixels])
    batch = whitening.apply(inputs), labels
    assert relative_error(batch[0], inputs) > 0.1
    assert_exact(made, state, batch, *gradients(made, state, batch))


@pytest.mark.parametrize("outer_step", [0, 8])  # where large and where small gradients count
def test_windows_placed_by_the_gradient_have_the_exact_gradient_of_their_updates(
    outer_step: int,
) -> None:
    """That of the loss after the window, as a function of what is learned inside it."""
    made, state, batch = prepare(CASE)
    made = replace(
        made,
        adjoint=Truncated(2, placement="gradient"),
        config=replace(made.config, iterations=9),
    )
    state = replace(state, outer_step=outer_step)
    found = gradients(made, state, batch)
    steps = made.parametrisation.steps(state.current)
    placed = made.adjoint_at(outer_step, steps)
    assert isinstance(placed, Truncated)
    assert placed.end is not None
    schedule = steps.schedule[: placed.end]
    theta0 = made.weights("network", made.numbers_at(outer_step))
    engine: Engine = engines(made)["plain"]
    before = trained(made.rule, engine, theta0, steps.for_each(3).at(schedule[:-2]))

    @torch.no_grad()
    def loss(parameters: Tree) -> Tensor:
        current = state.current._replace(learned=parameters)
        learner, own = before, made.parametrisation.steps(current).for_each(3)
        for step in own.at(schedule[-2:]):
            learner = made.rule.update(learner, engine.gradient(learner.weights, step), step)
        return engine.outer_losses(learner.weights, *batch).mean()

    for direction in directions(found[0]):
        moved = [
            float(loss({n: p + k * DISTANCE * direction[n] for n, p in state.parameters.items()}))
            for k in (1, -1, 2, -2)
        ]
        expected = (8 * (moved[0] - moved[1]) - (moved[2] - moved[3])) / (12 * DISTANCE)
        for gradient in found:
            along = sum(float((gradient[n] * one).sum()) for n, one in direction.items())
            size = min(float(gradient[n].norm()) for n, one in direction.items() if one.any())
            assert abs(along - expected) < 2e-6 * size


def test_a_gradient_that_is_clipped_by_its_running_norm_keeps_its_direction() -> None:
    made, state, batch = prepare(CASE)
    for gradient in gradients(made, state, batch):
        norm = float(length(gradient))
        found, _ = clipped(gradient, norm, 2.0, norm / 8)
        assert float(length(found)) == pytest.approx(norm / 4)
        steepest = {name: g / norm for name, g in gradient.items()}
        along = sum(float((found[n] * one).sum()) for n, one in steepest.items())
        assert along == pytest.approx(slope(made, state, batch, steepest) / 4, rel=2e-6)
