"""Distillation differentiates exactly through every network, and through users' own layers."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from datadistill.core.adjoint import BackGradient, StoredGraph
from tests.helpers import leaves, nested_autograd, relative_error
from tests.models.helpers import ATTENTION, NETWORKS, RECURRENT, problem, slope


@pytest.mark.parametrize("name", NETWORKS)
def test_both_adjoints_agree_with_each_other_and_with_finite_differences(name: str) -> None:
    case = problem(name)
    stored = leaves(case.differentiate(StoredGraph())[1])
    for part, found in leaves(case.differentiate(BackGradient())[1]).items():
        length = float(found.norm())
        assert length > 1e-4
        assert relative_error(stored[part], found) < 1e-10
        # Where a unit of ReLU opens or another pixel of a max-pooling wins, ∇ℓ jumps, and after
        # an update so does L itself: differences mean something only between two such jumps.
        # With thousands of units the nearest is close, so L is moved by less than a millionth:
        # float64 then leaves seven digits, and with the seed of these problems there is no jump
        # within three times that distance.
        distance = min(3e-6, 3e-7 / length)
        # Along the gradient itself the derivative is ‖∇‖: every entry counts, none cancel.
        assert slope(case, part, found / length, distance) == pytest.approx(length, rel=1e-6)
        # Along any other direction, so that no entry of the gradient can be left out.
        random = torch.Generator().manual_seed(1)
        direction = torch.randn(found.shape, generator=random, dtype=torch.float64)
        direction /= direction.norm()
        anywhere = slope(case, part, direction, distance)
        assert abs(float((found * direction).sum()) - anywhere) < 1e-6 * length


@pytest.mark.parametrize("name", NETWORKS)
def test_both_adjoints_agree_with_a_plain_nested_unroll_of_each_network(name: str) -> None:
    case = problem(name)
    with sdpa_kernel(SDPBackend.MATH):
        alone = [
            nested_autograd(
                case.network.module(),
                {n: w[j] for n, w in case.theta0.items()},
                case.steps,
                case.batch,
                "classification",
            )
            for j in range(2)
        ]
    for adjoint in (BackGradient(), StoredGraph()):
        losses, gradient = case.differentiate(adjoint)
        assert relative_error(losses, torch.stack([loss for loss, _ in alone])) < 1e-12
        for part, found in enumerate(leaves(gradient).values()):
            mean = torch.stack([gradients[part] for _, gradients in alone]).mean(0)
            assert relative_error(found, mean) < 1e-10


@pytest.mark.parametrize("name", [*ATTENTION, *RECURRENT])
def test_other_kernels_that_torch_takes_in_float32_are_as_exact(name: str) -> None:
    exact = leaves(problem(name).differentiate(BackGradient())[1])
    for part, found in leaves(
        problem(name, dtype=torch.float32).differentiate(BackGradient())[1]
    ).items():
        assert found.dtype == torch.float32
        assert relative_error(found.double(), exact[part]) < 1e-4


@pytest.mark.parametrize("name", NETWORKS)
def test_every_weight_is_trained_and_outputs_are_those_of_the_plain_module(name: str) -> None:
    case = problem(name)
    weights = {n: w.clone().requires_grad_() for n, w in case.theta0.items()}
    outputs = case.network(weights, case.batch[0])
    for j in range(2):
        module = case.network.module({n: w[j] for n, w in case.theta0.items()})
        torch.testing.assert_close(outputs[j], module(case.batch[0]))
    case.outer_loss(weights).sum().backward()
    for weight in weights.values():
        assert weight.grad is not None
        assert weight.grad.flatten(1).any(1).all()
