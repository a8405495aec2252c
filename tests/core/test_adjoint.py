"""The most important test of the project: the gradients are right."""

import pytest
import torch
from torch import Tensor

from datadistill.core.adjoint import Adjoint, BackGradient, StoredGraph, Truncated
from datadistill.core.distilled import Position, Steps
from datadistill.core.random import stream
from datadistill.core.update import Momentum
from datadistill.engine import FastEngine
from datadistill.errors import ConfigError
from tests.covering import combinations
from tests.helpers import (
    NETWORKS,
    OBJECTIVES,
    Problem,
    leaves,
    nested_autograd,
    problem,
    relative_error,
)

WHOLE = 10**6
ADJOINTS: dict[str, Adjoint] = {
    "back-gradient": BackGradient(),
    "stored graph": StoredGraph(),
    "truncated, whole window": Truncated(WHOLE),
}
SCHEDULES = [(1, 1), (3, 1), (1, 3), (4, 2)]
CATALOGUE = combinations(NETWORKS, OBJECTIVES, SCHEDULES, [1, 3])


def central_difference(case: Problem, name: str, direction: Tensor) -> float:
    """dL along a direction of one tensor, to fourth order in the distance."""

    def loss(distance: float) -> float:
        tensors = leaves(case.steps)
        tensors[name] = tensors[name] + distance * direction
        return float(case.loss(Steps(*tensors.values())))

    h = 1e-4
    return (8 * (loss(h) - loss(-h)) - (loss(2 * h) - loss(-2 * h))) / (12 * h)


@pytest.mark.parametrize(("network", "objective", "schedule", "networks"), CATALOGUE)
def test_every_adjoint_agrees_with_finite_differences_and_the_others(
    network: str, objective: str, schedule: tuple[int, int], networks: int
) -> None:
    case = problem(network, objective, *schedule, networks)
    gradients = [leaves(case.differentiate(adjoint)[1]) for adjoint in ADJOINTS.values()]
    for name, reference in gradients[0].items():
        # Along the gradient itself the derivative is ‖∇‖: every entry counts, none cancel.
        length = reference.norm()
        steepest = central_difference(case, name, reference / length)
        random = torch.randn(reference.shape, generator=stream(1, name), dtype=reference.dtype)
        random /= random.norm()
        anywhere = central_difference(case, name, random)
        for gradient in gradients:
            found = gradient[name]
            assert relative_error(found, reference) < 1e-10
            assert float((found * reference).sum() / length) == pytest.approx(steepest, rel=1e-6)
            assert abs(float((found * random).sum()) - anywhere) < 1e-6 * float(length)


@pytest.mark.parametrize(("network", "objective"), combinations(NETWORKS, OBJECTIVES, together=1))
def test_each_entry_of_the_gradient_agrees_with_finite_differences(
    network: str, objective: str
) -> None:
    case = problem(network, objective, steps=2, epochs=2, networks=2)
    _, gradient = case.differentiate(BackGradient())
    for name, found in leaves(gradient).items():
        for index in range(0, found.numel(), max(found.numel() // 7, 1)):
            unit = torch.zeros_like(found)
            unit.view(-1)[index] = 1
            expected = central_difference(case, name, unit)
            error = abs(float(found.view(-1)[index]) - expected)
            assert error < 1e-6 * float(found.abs().max())


@pytest.mark.parametrize(("network", "objective", "schedule", "networks"), CATALOGUE)
def test_every_adjoint_agrees_with_a_plain_nested_unroll_of_each_network(
    network: str, objective: str, schedule: tuple[int, int], networks: int
) -> None:
    case = problem(network, objective, *schedule, networks)
    alone = [
        nested_autograd(
            case.network.module(),
            {name: w[j] for name, w in case.theta0.items()},
            case.steps,
            case.batch,
            objective,
        )
        for j in range(networks)
    ]
    for adjoint in ADJOINTS.values():
        losses, gradient = case.differentiate(adjoint)
        assert relative_error(losses, torch.stack([loss for loss, _ in alone])) < 1e-12
        for part, found in enumerate(leaves(gradient).values()):
            mean = torch.stack([gradients[part] for _, gradients in alone]).mean(0)
            assert relative_error(found, mean) < 1e-10


@pytest.mark.parametrize("adjoint", [BackGradient(), BackGradient(segments=4), StoredGraph()])
def test_momentum_is_differentiated_exactly(adjoint: Adjoint) -> None:
    case = problem(steps=2, epochs=3, networks=2, rule=Momentum(0.8))
    plain = problem(steps=2, epochs=3, networks=2)
    fast = FastEngine(case.network, case.objective)
    _, gradient = case.differentiate(adjoint, engine=fast)
    for name, found in leaves(gradient).items():
        direction = found / found.norm()
        expected = central_difference(case, name, direction)
        assert float(found.norm()) == pytest.approx(expected, rel=1e-6)
        without = leaves(plain.differentiate(adjoint)[1])[name]
        assert relative_error(found, without) > 0.01


def test_no_segments_are_refused() -> None:
    with pytest.raises(ConfigError, match="at least 1"):
        BackGradient(segments=0)


def test_hard_labels_have_no_gradient_but_images_and_rates_do() -> None:
    soft = problem(steps=2, epochs=2)
    hard = Steps(soft.steps.inputs, torch.tensor([[0, 1, 2], [2, 1, 0]]), soft.steps.learning_rates)
    one_hot = Steps(hard.inputs, torch.eye(3).double()[hard.labels], hard.learning_rates)
    for adjoint in ADJOINTS.values():
        _, gradient = soft.differentiate(adjoint, hard)
        _, expected = soft.differentiate(adjoint, one_hot)
        assert not gradient.labels.any()
        assert relative_error(gradient.inputs, expected.inputs) < 1e-12
        assert relative_error(gradient.learning_rates, expected.learning_rates) < 1e-12


@pytest.mark.parametrize("window", [1, 3, 5])
def test_a_truncated_window_is_exact_with_the_weights_before_it_held_constant(window: int) -> None:
    case = problem(steps=3, epochs=2, networks=2)
    _, found = case.differentiate(Truncated(window, random=False))

    rule, engine, learner = case.rule, case.engine, case.rule.start(case.theta0)
    schedule = case.steps.schedule
    before, inside = schedule[:-window], schedule[-window:]
    with torch.no_grad():
        for position in before:
            step = case.steps[position]
            learner = rule.update(learner, engine.gradient(learner.weights, step), step)
    tensors = {name: t.clone().requires_grad_() for name, t in leaves(case.steps).items()}
    steps = Steps(*tensors.values())
    for position in inside:
        step = steps[position]
        learner = rule.update(learner, engine.gradient(learner.weights, step), step)
    expected = torch.autograd.grad(case.outer_loss(learner.weights).mean(), [*tensors.values()])
    for gradient, reference in zip(leaves(found).values(), expected, strict=True):
        assert relative_error(gradient, reference) < 1e-12


def test_a_random_window_falls_on_every_update_and_follows_its_stream() -> None:
    case = problem(steps=4, epochs=2)
    touched: set[Position] = set()
    for number in range(30):

        def run(number: int = number) -> Steps:
            return Truncated(2)(
                case.rule,
                case.engine,
                case.rule.start(case.theta0),
                case.steps,
                case.outer_loss,
                stream(0, "window", number),
            )[1]

        rates = run().learning_rates
        assert torch.equal(rates, run().learning_rates)
        positions = [p for p in case.steps.schedule if rates[p.epoch, p.step] != 0]
        assert len(positions) == 2
        touched.update(positions)
    assert touched == set(case.steps.schedule)


def test_a_window_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least 1"):
        Truncated(0)


@pytest.mark.parametrize("network", NETWORKS)
def test_networks_side_by_side_are_the_networks_alone(network: str) -> None:
    case = problem(network, steps=3, epochs=2, networks=3)
    losses, _ = case.differentiate(BackGradient())
    _, together = case.differentiate(BackGradient())
    alone: list[Steps] = []
    for j in range(3):
        single = Problem(
            case.network,
            case.objective,
            case.steps,
            {name: w[j : j + 1] for name, w in case.theta0.items()},
            case.batch,
        )
        loss, gradient = single.differentiate(BackGradient())
        alone.append(gradient)
        assert relative_error(losses[j], loss[0]) < 1e-13
    for name, found in leaves(together).items():
        mean = torch.stack([leaves(gradient)[name] for gradient in alone]).mean(0)
        assert relative_error(found, mean) < 1e-12


def test_the_gradient_follows_the_device_of_its_inputs(device: str) -> None:
    case = problem("convolutional", steps=2, epochs=2, dtype=torch.float32, device=device)
    losses, gradient = case.differentiate(BackGradient())
    _, exact = problem("convolutional", steps=2, epochs=2).differentiate(BackGradient())
    assert losses.device.type == device
    for name, found in leaves(gradient).items():
        assert found.device.type == device
        assert found.dtype == torch.float32
        assert relative_error(found.cpu().double(), leaves(exact)[name]) < 1e-4
