"""One network, several processes: a team divides the minibatch of real data."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

import pytest
import torch
from torch import Tensor, nn

from datadistill.core.adjoint import Adjoint, BackGradient, StoredGraph, Truncated
from datadistill.core.distiller import Distiller
from datadistill.core.engine import PlainEngine
from datadistill.core.initialization import FixedInit
from datadistill.core.network import Network, Weights
from datadistill.core.objective import Classification, OwnObjective
from datadistill.core.settings import DistillerConfig
from datadistill.engine import FastEngine
from datadistill.engine.shares import check_shares
from datadistill.engine.team import Team
from datadistill.errors import ConfigError, ModelError
from tests.helpers import Convolutional, relative_error

LABELS = torch.arange(31) % 3
INPUTS = torch.randn(31, 1, 6, 6, generator=torch.Generator().manual_seed(0)).double()
MLP = nn.Sequential(nn.Flatten(), nn.Linear(36, 8), nn.Tanh(), nn.Linear(8, 3))
Result = TypeVar("Result")


class WaitingError(Exception):
    """A member must wait until the others have told their part of a sum."""


@dataclass(eq=False)
class Member(Team):
    """Adds up what all members have told; the first one that has to wait begins anew."""

    told: dict[tuple[int, int], Tensor] = field(default_factory=dict[tuple[int, int], Tensor])
    sums: int = 0

    def sum(self, tensor: Tensor) -> Tensor:
        number, self.sums = self.sums, self.sums + 1
        self.told[number, self.rank] = tensor
        if any((number, rank) not in self.told for rank in range(self.size)):
            raise WaitingError
        return torch.stack([self.told[number, rank] for rank in range(self.size)]).sum(0)


def each(size: int, act: Callable[[Member], Result], sums: int = 2) -> list[Result]:
    """What every member of a team finds, of which so many sums are made."""
    told: dict[tuple[int, int], Tensor] = {}
    for rank in [*range(size)] * sums:
        with contextlib.suppress(WaitingError):
            act(Member(rank, size, told))
    return [act(Member(rank, size, told)) for rank in range(size)]


class Watched(FastEngine):
    """Remembers how many real examples each loss is of."""

    def __init__(self, made: Distiller, team: Team) -> None:
        super().__init__(made.network, made.objective, team=team)
        self.seen: list[int] = []

    def outer_losses(self, weights: Weights, inputs: Tensor, labels: Tensor) -> Tensor:
        self.seen.append(len(inputs))
        return super().outer_losses(weights, inputs, labels)


def distiller(module: nn.Module, adjoint: Adjoint | None = None) -> Distiller:
    network = Network(module, INPUTS, dtype=torch.float64)
    config = DistillerConfig(steps=2, epochs=2, learning_rate=0.1)
    return Distiller(network, FixedInit(1), Classification(), config, adjoint or BackGradient())


@pytest.mark.parametrize("adjoint", [BackGradient(), StoredGraph(), Truncated(2)], ids=repr)
@pytest.mark.parametrize("module", [Convolutional(3), MLP])
@pytest.mark.parametrize(("size", "examples"), [(2, 31), (3, 31), (3, 2)])
def test_members_with_one_network_find_the_gradient_of_one_process(
    adjoint: Adjoint, module: nn.Module, size: int, examples: int
) -> None:
    made = distiller(module, adjoint)
    state, batch = made.init(INPUTS.shape[1:], LABELS), (INPUTS[:examples], LABELS[:examples])
    expected_losses, expected = replace(
        made, own_engine=PlainEngine(made.network, made.objective)
    ).gradient(state, batch)
    shares = dict[int, int]()

    def gradient(team: Member) -> tuple[Tensor, dict[str, Tensor]]:
        engine = Watched(made, team)
        found = replace(made, own_engine=engine).gradient(state, batch)
        assert team.sums == 2  # of the outer loss with its gradient, and of what is found
        whole, *share = engine.seen  # of all members together, then of this one
        assert whole == examples
        shares[team.rank] = sum(share)
        return found

    found = each(size, gradient)
    assert sum(shares.values()) == examples  # every example by one member
    assert max(shares.values()) - min(shares.values()) <= 1
    for losses, gradients in found:
        assert relative_error(losses, expected_losses) < 1e-12
        for name, one in expected.items():
            assert relative_error(gradients[name], one) < 1e-12
            assert torch.equal(gradients[name], found[0][1][name])


def test_what_mixes_examples_cannot_be_divided() -> None:
    mixing = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(36, track_running_stats=False))
    made = distiller(nn.Sequential(mixing, nn.Linear(36, 3)))
    with pytest.raises(ModelError, match=r"several processes cannot divide[\s\S]*use threads"):
        check_shares(made.network, made.objective)
    plain = distiller(Convolutional(3))
    check_shares(plain.network, plain.objective)
    own = OwnObjective(lambda outputs, labels: outputs.logsumexp((0, 1)), "mine:loss")
    with pytest.raises(ConfigError, match=r"mean over examples; mine:loss does not say"):
        check_shares(plain.network, own)
