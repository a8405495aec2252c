"""The linear case: closed forms against independent computations, in float64."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from datadistill.core.distilled import Step
from datadistill.errors import ConfigError, DataError
from datadistill.theory import (
    best_below,
    distilled_for_any_start,
    expected_excess,
    gd_step,
    loss,
    minimum,
    spectral_bound,
    unreachable_start,
)

Problem = tuple[Tensor, Tensor, torch.Generator]


def normal(random: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=random, dtype=torch.float64)


def problem(seed: int, dimension: int, extra: int = 20, condition: float = 10.0) -> Problem:
    """Random data whose columns have singular values from 1 down to 1/condition, times √N."""
    random = torch.Generator().manual_seed(seed)
    examples = dimension + extra
    left = torch.linalg.qr(normal(random, examples, dimension)).Q
    right = torch.linalg.qr(normal(random, dimension, dimension)).Q
    values = torch.logspace(0, -math.log10(condition), dimension, dtype=torch.float64)
    return math.sqrt(examples) * left * values @ right, normal(random, examples), random


def gaussian(random: torch.Generator, dimension: int) -> tuple[Tensor, Tensor]:
    root = normal(random, dimension, dimension) / math.sqrt(dimension)
    return normal(random, dimension), root @ root.T + 0.05 * torch.eye(dimension).double()


def random_step(random: torch.Generator, images: int, dimension: int) -> Step:
    rate = torch.rand((), generator=random, dtype=torch.float64)
    return Step(normal(random, images, dimension), normal(random, images), rate)


problems = st.builds(
    problem,
    st.integers(0, 2**31),
    st.integers(1, 12),
    st.integers(0, 60),
    st.floats(1, 1e3),
)


@settings(max_examples=60, deadline=None)
@given(problems, st.integers(0, 4), st.floats(1e-3, 1e3), st.floats(0, 1e3))
def test_one_step_reaches_the_least_squares_solution_from_any_start(
    made: Problem, more: int, rate: float, size: float
) -> None:
    d, t, random = made
    dimension = d.shape[1]
    step = distilled_for_any_start(d, t, dimension + more, rate)
    theta0 = size * normal(random, 5, dimension)
    solution = np.linalg.lstsq(d.numpy(), t.numpy(), rcond=None)[0]
    assert step.inputs.shape == (dimension + more, dimension)
    reached = gd_step(theta0, step)
    assert np.abs(reached.numpy() - solution).max() <= 1e-8 * max(1, np.abs(solution).max())


@settings(max_examples=60, deadline=None)
@given(problems, st.integers(1, 11), st.floats(1e-3, 1e3))
def test_with_fewer_images_a_start_exists_that_cannot_be_brought_to_the_minimum(
    made: Problem, fewer: int, excess: float
) -> None:
    d, t, random = made
    images = d.shape[1] - fewer
    if images < 1:
        return
    step = random_step(random, images, d.shape[1])
    theta0 = unreachable_start(d, t, step, excess)
    least = loss(d, t, minimum(d, t))
    assert loss(d, t, gd_step(theta0, step)) - least >= excess * (1 - 1e-6)


def test_the_best_step_of_d_minus_1_images_has_such_a_start_too() -> None:
    d, t, random = problem(3, 3)
    mean, covariance = gaussian(random, 3)
    step = best_below(d, t, mean, covariance, 2)
    reached = gd_step(unreachable_start(d, t, step, 7.0), step)
    assert loss(d, t, reached) - loss(d, t, minimum(d, t)) >= 7 * (1 - 1e-6)


def test_a_step_is_the_gradient_of_the_papers_loss() -> None:
    d, t, random = problem(0, 4)
    step, theta0 = random_step(random, 3, 4), normal(random, 4).requires_grad_()
    ((g,)) = torch.autograd.grad(loss(step.inputs, step.labels, theta0), theta0)
    torch.testing.assert_close(gd_step(theta0, step), theta0 - step.learning_rate * g)
    torch.testing.assert_close(loss(d, t, theta0), (d @ theta0 - t).square().sum() / (2 * len(d)))


def test_the_papers_example_needs_its_own_learning_rate() -> None:
    """With d̃ = N·I and t̃ = N·θ*, the condition I = (η̃/M) d̃ᵀd̃ holds for η̃ = D/N² alone."""
    d, t, random = problem(1, 6)
    n, dimension = len(d), 6
    solution, theta0 = minimum(d, t), normal(random, dimension)
    inputs = n * torch.eye(dimension).double()

    def reached(rate: float) -> Tensor:
        return gd_step(theta0, Step(inputs, n * solution, torch.tensor(rate, dtype=torch.float64)))

    torch.testing.assert_close(reached(dimension / n**2), solution, rtol=0, atol=1e-10)
    assert (reached(1.0) - solution).norm() > 1
    one = distilled_for_any_start(d, t)  # for η̃ = 1 the constant is √D
    torch.testing.assert_close(one.inputs, math.sqrt(dimension) * torch.eye(dimension).double())


def test_the_expected_excess_is_that_of_many_random_starts() -> None:
    d, t, random = problem(5, 4)
    mean, covariance = gaussian(random, 4)
    step = random_step(random, 2, 4)
    theta0 = mean + normal(random, 200_000, 4) @ torch.linalg.cholesky(covariance).T
    excess = loss(d, t, gd_step(theta0, step)) - loss(d, t, minimum(d, t))
    error = float(excess.std()) / math.sqrt(len(excess))
    expected = float(expected_excess(d, t, step, mean, covariance))
    assert abs(float(excess.mean()) - expected) < 4 * error < 0.05 * expected


@pytest.mark.parametrize("images", [1, 2, 4])
def test_where_everything_commutes_the_leading_eigenvectors_are_best(images: int) -> None:
    """Σ = σ²I around the minimum: A projects on the leading eigenvectors of H."""
    d, t, _ = problem(2, 5)
    mean, covariance = minimum(d, t), 0.3 * torch.eye(5).double()
    step = best_below(d, t, mean, covariance, images)
    values, vectors = np.linalg.eigh(d.T.numpy() @ d.numpy() / len(d))
    leading = vectors[:, -images:]
    a = (step.learning_rate / images * step.inputs.T @ step.inputs).numpy()
    np.testing.assert_allclose(a, leading @ leading.T, atol=1e-6)
    least = 0.5 * 0.3 * values[: 5 - images].sum()
    assert float(expected_excess(d, t, step, mean, covariance)) == pytest.approx(least, rel=1e-8)
    bound = spectral_bound(d, t, mean, covariance, images)[0]
    assert float(bound) == pytest.approx(least, rel=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_no_single_image_of_a_fine_grid_is_better_than_the_best(seed: int) -> None:
    """Brute force over all of A = r uuᵀ, b = βu in two dimensions."""
    d, t, random = problem(seed, 2)
    mean, covariance = gaussian(random, 2)
    step = best_below(d, t, mean, covariance, 1)
    found = float(expected_excess(d, t, step, mean, covariance))
    best = brute_force(d.numpy(), t.numpy(), mean.numpy(), covariance.numpy())
    assert found <= best * (1 + 1e-12)
    assert found == pytest.approx(best, rel=5e-3)  # the grid comes near
    assert found >= float(spectral_bound(d, t, mean, covariance, 1)[0])


def brute_force(d: np.ndarray, t: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> float:
    """The least mean excess over points that have exactly this mean and covariance."""
    roots = math.sqrt(2) * np.linalg.cholesky(covariance).T
    theta0 = np.concatenate([mean + roots, mean - roots])
    solution = np.linalg.lstsq(d, t, rcond=None)[0]
    angle, r = np.meshgrid(np.linspace(0, math.pi, 721), np.linspace(0, 3, 201))
    u = np.stack([np.cos(angle), np.sin(angle)], -1)

    def cost(beta: float) -> np.ndarray:
        total = np.zeros_like(r)
        for start in theta0:
            error = start - r[..., None] * (u @ start)[..., None] * u + beta * u - solution
            total += np.square(error @ d.T).mean(-1) / 2
        return total / len(theta0)

    low, middle, high = cost(-1.0), cost(0.0), cost(1.0)  # a parabola in β
    curvature, slope = (low + high) / 2 - middle, (high - low) / 2
    return float((middle - slope**2 / (4 * curvature)).min())


def test_the_expected_excess_falls_with_every_image_and_stays_above_the_bound() -> None:
    d, t, random = problem(8, 4)
    mean, covariance = gaussian(random, 4)
    steps = [best_below(d, t, mean, covariance, images) for images in range(1, 4)]
    found = [float(expected_excess(d, t, step, mean, covariance)) for step in steps]
    bounds = [float(spectral_bound(d, t, mean, covariance, images)[0]) for images in range(1, 4)]
    assert found == sorted(found, reverse=True)
    assert all(one >= bound for one, bound in zip(found, bounds, strict=True))


def test_what_has_no_answer_is_refused() -> None:
    d, t, random = problem(0, 3)
    mean, covariance = gaussian(random, 3)
    with pytest.raises(ConfigError, match="at least 3"):
        distilled_for_any_start(d, t, 2)
    with pytest.raises(ConfigError, match="from 1 to 2"):
        best_below(d, t, mean, covariance, 3)
    with pytest.raises(ConfigError, match="span all 3"):
        unreachable_start(d, t, distilled_for_any_start(d, t))
    with pytest.raises(DataError, match="not independent"):
        minimum(torch.cat([d, d[:, :1]], 1), t)
