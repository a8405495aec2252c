"""Held-out networks: trained in groups side by side, and tested along the way."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from threading import Lock

import torch
from torch import Tensor

from ..core.initialization import networks_for
from ..core.network import Network, Weights
from ..core.objective import Objective
from ..core.update import UpdateRule
from ..core.values import one_line
from ..data import LabelledData
from ..data.running_statistics import Statistics
from ..engine.groups import Groups, in_order
from ..engine.side_by_side import DEFAULT_BYTES, SideBySide
from ..engine.team import ALONE, Team
from ..engine.testing import Sums, Tester
from ..errors import ConfigError
from ..progress import Progress, ProgressCallback
from .result import Evaluation
from .testing import evaluation_of, joined

Sample = Callable[[Sequence[torch.Generator]], Weights]
"""Draws the initial weights θ₀ of one network per generator."""

BY_THE_BATCH = Statistics()

HELD_OUT = "held-out network"
VALIDATION = "validation network"
"""Purposes of random streams: networks that are reported, and networks to choose with."""

Learn = Callable[[Weights, range], Iterable[Weights]]
"""θ₀ of some networks and their numbers → θ₀, θ₁, …, θ_T, one after the other."""


@dataclass(frozen=True)
class HeldOut:
    """The held-out networks 0 to ``networks`` − 1 of a seed, trained in groups side by side.

    Attributes:
        network: The architecture.
        sample: Draws their initial weights, one network per generator.
        networks: How many.
        seed: Which.
        memory: Memory limit in bytes of the networks that are side by side.
        team: The members among which the networks are divided; all get the same evaluations.
        purpose: The random stream that numbers them; networks of another purpose are others.
    """

    network: Network
    sample: Sample
    networks: int = 1
    seed: int = 0
    memory: int = DEFAULT_BYTES
    team: Team = ALONE
    purpose: str = HELD_OUT

    __repr__ = one_line

    def __post_init__(self) -> None:
        if self.networks < 1:
            raise ConfigError(f"networks is {self.networks}.", "Set networks to at least 1.")

    def train_and_test(
        self,
        learn: Learn,
        data: LabelledData,
        objective: Objective,
        *,
        after: Sequence[int],
        batch: Tensor,
        rule: UpdateRule,
        statistics: Statistics = BY_THE_BATCH,
        progress: ProgressCallback,
    ) -> list[Evaluation]:
        """Trains the networks and tests them after some of their updates.

        Args:
            learn: Trains them.
            data: The real data to test on.
            objective: What is measured.
            after: Numbers of updates after which to test.
            batch: As many inputs as an update is made on.
            rule: An update rule that carries along as much as theirs.
            statistics: What running statistics are measured on before each test.
            progress: Called after every test of a group, perhaps in another thread.

        Returns:
            One evaluation of all networks for each entry of ``after``.
        """
        architecture = SideBySide(self.network, batch, self.memory)
        each = architecture.bytes_in_training(len(batch), rule)
        tester, tests = Tester(architecture, data, objective), sorted(set(after))
        mine = self.team.share(range(self.networks))
        report = _Report(progress, len(mine) * len(tests), objective.metric, len(data))
        drawing = Lock()

        def test(weights: Weights, wanted: Callable[[], None]) -> Sums:
            return tester(statistics.added_to(weights, self.network), wanted)

        def work(group: range, wanted: Callable[[], None]) -> list[Sums]:
            numbers = mine[group.start : group.stop]
            with drawing:  # what draws the weights may not be made for several threads
                theta0 = self.sample(networks_for(self.seed, self.purpose, numbers))
            with torch.no_grad():
                return _tested(learn(theta0, numbers), tests, test, report, wanted)

        found: list[list[Sums]] = [[tester.nothing] for _ in tests]
        if mine:
            groups = Groups.within(
                self.memory, len(mine), each=each, besides=tester.bytes, threads=tester.threads
            )
            found = in_order(groups.each(work))
        sums = dict(zip(tests, _gather(self.team, self.networks, found), strict=True))
        return [
            replace(
                evaluation_of(sums[t], tester, data, objective, seed=self.seed, updates=t),
                statistics=statistics.name,
            )
            for t in after
        ]


def _tested(
    trail: Iterable[Weights],
    tests: Sequence[int],
    test: Callable[[Weights, Callable[[], None]], Sums],
    report: "_Report",
    wanted: Callable[[], None],
) -> list[Sums]:
    """Tests some networks along θ₀, θ₁, …, which goes no further than the last test."""
    tested: list[Sums] = []
    for t, weights in enumerate(trail):
        wanted()
        if t == tests[len(tested)]:
            tested.append(test(weights, wanted))
            report(tested[-1], last=t == tests[-1])
        if len(tested) == len(tests):
            break
    return tested


def _gather(team: Team, networks: int, found: list[list[Sums]]) -> list[Sums]:
    """The sums of all networks, from every member's groups; one for each test."""
    tests = [joined(groups) for groups in found]
    rows = torch.stack([torch.cat([s.scores, s.losses[:, None]], 1) for s in tests], 1)
    gathered = team.gather(range(networks), rows).unbind(1)
    return [Sums(one[:, :-1], one[:, -1]) for one in gathered]


class _Report:
    """Tells how many networks have been tested, from any thread."""

    def __init__(self, progress: ProgressCallback, total: int, metric: str, examples: int) -> None:
        self._progress, self._total, self._metric = progress, total, metric
        self._examples = examples
        self._lock, self._done, self._values = Lock(), 0, list[float]()

    def __call__(self, sums: Sums, *, last: bool) -> None:
        values = sums.metrics(self._examples)
        with self._lock:
            self._done += len(values)
            self._values += values if last else []
            mean = {self._metric: sum(self._values) / len(self._values)} if self._values else {}
            self._progress(Progress("evaluating", self._done, self._total, mean))
