"""Networks divided among the members of a team."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

import pytest
import torch
from torch import Tensor

from datadistill.core.adjoint import Adjoint, BackGradient, Truncated
from datadistill.core.distiller import Distiller
from datadistill.core.initialization import RandomInit
from datadistill.core.network import Network
from datadistill.core.objective import Classification
from datadistill.core.settings import DistillerConfig
from datadistill.engine import FastEngine
from datadistill.engine.team import Team, check_division
from datadistill.errors import ConfigError
from tests.helpers import Convolutional, relative_error

LABELS = torch.arange(30) % 3
INPUTS = torch.randn(30, 1, 6, 6, generator=torch.Generator().manual_seed(0)).double()

Result = TypeVar("Result")


@dataclass(eq=False)
class Member(Team):
    """Adds up by doing everything twice: first all members tell, then all are answered."""

    told: dict[int, Tensor] = field(default_factory=dict[int, Tensor])

    def sum(self, tensor: Tensor) -> Tensor:
        if len(self.told) < self.size:
            self.told[self.rank] = tensor
            return tensor
        return torch.stack([self.told[rank] for rank in range(self.size)]).sum(0)


def each(size: int, act: Callable[[Team], Result]) -> list[Result]:
    """What every member of a team gets."""
    told: dict[int, Tensor] = {}
    members = [Member(rank, size, told) for rank in range(size)]
    for member in members[: size if size > 1 else 0]:
        act(member)
    return [act(member) for member in members]


def distiller(dtype: torch.dtype, adjoint: Adjoint | None = None, networks: int = 4) -> Distiller:
    network = Network(Convolutional(3), INPUTS, dtype=dtype)
    config = DistillerConfig(steps=2, epochs=2, learning_rate=0.1, networks=networks)
    return Distiller(network, RandomInit(), Classification(), config, adjoint or BackGradient())


def with_team(made: Distiller, team: Team) -> Distiller:
    return replace(made, own_engine=FastEngine(made.network, made.objective, team=team))


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)], ids=str
)
@pytest.mark.parametrize("adjoint", [BackGradient(), Truncated(2)], ids=repr)
@pytest.mark.parametrize(("networks", "size"), [(4, 2), (5, 3)])
def test_a_team_finds_the_losses_and_the_gradient_of_one_process(
    dtype: torch.dtype, tolerance: float, adjoint: Adjoint, networks: int, size: int
) -> None:
    made = distiller(dtype, adjoint, networks=networks)
    state = replace(made.init(INPUTS.shape[1:], LABELS), outer_step=3)
    batch = (INPUTS.to(dtype), LABELS)
    losses, gradient = made.gradient(state, batch)
    found = each(size, lambda team: with_team(made, team).gradient(state, batch))
    for member_losses, member_gradient in found:
        assert relative_error(member_losses, losses) < tolerance
        for name, expected in gradient.items():
            assert relative_error(member_gradient[name], expected) < tolerance
            assert torch.equal(member_gradient[name], found[0][1][name])
            assert member_gradient[name].dtype == dtype


def test_what_is_not_finite_in_one_member_is_rejected_by_all() -> None:
    made = distiller(torch.float64, networks=2)
    state = made.init(INPUTS.shape[1:], LABELS)

    def rejected(team: Team) -> int:
        inputs = INPUTS * (float("nan") if team.rank else 1.0)
        return with_team(made, team).step(state, (inputs, LABELS))[0].rejected

    assert each(2, rejected) == [1, 1]


@pytest.mark.parametrize(("count", "size"), [(8, 2), (7, 3), (2, 4), (0, 2)])
def test_shares_are_nearly_equal_and_leave_nothing_out(count: int, size: int) -> None:
    numbers = range(40, 40 + count)
    shares = [Team(rank, size).share(numbers) for rank in range(size)]
    assert [number for share in shares for number in share] == list(numbers)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_more_members_than_networks_are_refused() -> None:
    with pytest.raises(ConfigError, match="2 networks per outer step cannot be divided among 3"):
        check_division(2, 3)
    check_division(3, 3)
    check_division(1, 2)  # which divide the minibatch
