"""Where windows are placed, and clipping by a running norm."""

from dataclasses import replace

import pytest
import torch

from datadistill.core.adjoint import BackGradient, RidgeHead, Truncated
from datadistill.core.initialization import RandomInit
from datadistill.core.random import stream
from datadistill.errors import ConfigError, ModelError
from tests.core.test_distiller import BATCH, distiller, start
from tests.helpers import Branches, Mlp


@pytest.mark.parametrize(("share", "preferred"), [(0.1, slice(8, 11)), (0.9, slice(2, 5))])
def test_windows_are_placed_at_large_gradients_first_and_at_small_ones_at_last(
    share: float, preferred: slice
) -> None:
    norms = torch.tensor([0.1] * 5 + [2.0] * 5)
    adjoint = Truncated(2, placement="gradient")
    ends = [
        adjoint.placed(share, lambda: norms, stream(0, "window", n)).end or 0 for n in range(200)
    ]
    assert min(ends) >= 2
    assert max(ends) <= 10
    inside = sum(end in range(preferred.start, preferred.stop) for end in ends)
    assert inside > 0.6 * len(ends)


def test_windows_are_placed_anywhere_in_the_middle_of_a_run_and_by_default() -> None:
    def never() -> torch.Tensor:
        raise AssertionError

    placed = Truncated(2, placement="gradient")
    assert placed.placed(0.5, never, stream(0, "window")) is placed
    assert Truncated(2).placed(0.1, never, stream(0, "window")).end is None
    assert BackGradient().placed(0.1, never, stream(0, "window")) == BackGradient()
    with pytest.raises(ConfigError, match="There is no placement 'large'"):
        Truncated(2, placement="large")  # pyright: ignore[reportArgumentType]


def test_the_window_that_was_chosen_is_differentiated() -> None:
    """The norms are those of the updates of a network, so that the first window is the largest."""
    made = replace(distiller(networks=2, iterations=9), adjoint=Truncated(1, placement="gradient"))
    state = start(made)
    _, gradient = made.gradient(state, BATCH)
    rates = gradient["raw_rates"]
    assert (rates != 0).sum() == 1
    again = made.gradient(state, BATCH)[1]
    assert torch.equal(again["raw_rates"], rates)


def test_a_gradient_is_clipped_at_a_multiple_of_its_running_norm() -> None:
    made = distiller(networks=2, clip_factor=2.0)
    first, _ = made.step(start(made), BATCH)
    _, gradient = made.gradient(start(made), BATCH)
    norm = float(torch.cat([g.flatten() for g in gradient.values()]).norm())
    assert first.norm == pytest.approx(norm)
    small = replace(start(made), norm=1e-3)
    clipped, metrics = made.step(small, BATCH)
    assert metrics.gradient_norm == pytest.approx(norm)
    moments = torch.cat([m.flatten() for m in clipped.adam.first.values()])
    assert float(moments.norm()) == pytest.approx((1 - made.config.betas[0]) * 2e-3)
    assert clipped.norm == pytest.approx(0.9e-3 + 0.1 * 2e-3)
    assert distiller(networks=2).step(start(made), BATCH)[0].norm is None


def test_the_pool_of_a_ridge_head_trains_along_and_starts_anew() -> None:
    made = replace(distiller(networks=2), adjoint=RidgeHead(pool=4, updates=8))
    states = [start(made)]
    for _ in range(5):
        states.append(made.step(states[-1], BATCH)[0])
    ages = [[int(state.pool[f"{m}/age"]) for m in range(4)] for state in states]
    assert ages[0] == [0, 2, 4, 6]  # staggered, so that they do not all start anew at once
    assert ages[1] == [1, 3, 4, 6]
    assert ages[2] == [1, 3, 5, 7]
    assert ages[4] == [2, 4, 6, 0]
    weights = [state.pool["0/0"] for state in states]
    assert not torch.equal(weights[0], weights[1])
    assert torch.equal(weights[1], weights[2])


def test_a_ridge_head_needs_a_linear_last_layer_and_enough_networks() -> None:
    class Scaled(Mlp):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return 2 * super().forward(x)

    made = replace(distiller(Scaled(3), networks=1), adjoint=RidgeHead())
    with pytest.raises(ModelError, match=r"last layer of Scaled is not nn\.Linear"):
        made.gradient(start(made), BATCH)
    with pytest.raises(ConfigError, match="networks is 12, but 10 networks train along"):
        replace(distiller(Branches(3), RandomInit(), networks=12), adjoint=RidgeHead())
