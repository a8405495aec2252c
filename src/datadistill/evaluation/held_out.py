"""Held-out networks: trained in groups side by side, and tested along the way."""

from collections.abc import Callable, Iterable, Sequence
from threading import Lock

import torch

from ..core.groups import Groups, in_order
from ..core.initialization import networks_for
from ..core.network import Weights
from ..core.objective import Objective
from ..core.team import Team
from ..data import LabelledData
from ..errors import ConfigError
from ..progress import Progress, ProgressCallback
from .result import Evaluation
from .side_by_side import SideBySide
from .testing import Sums, Tester

Sample = Callable[[Sequence[torch.Generator]], Weights]
"""Draws the initial weights θ₀ of one network per generator."""

Learn = Callable[[Weights, range], Iterable[Weights]]
"""θ₀ of some networks and their numbers → θ₀, θ₁, …, θ_T, one after the other."""


def train_and_test(
    architecture: SideBySide,
    sample: Sample,
    learn: Learn,
    data: LabelledData,
    objective: Objective,
    *,
    after: Sequence[int],
    networks: int,
    seed: int,
    memory: int,
    each: int,
    team: Team,
    progress: ProgressCallback,
) -> list[Evaluation]:
    """Trains held-out networks and tests them after some of their updates.

    Args:
        architecture: The networks.
        sample: Draws their initial weights.
        learn: Trains them.
        data: The real data to test on.
        objective: What is measured.
        after: Numbers of updates after which to test.
        networks: How many networks: numbers 0 to ``networks`` − 1 of the seed.
        seed: Which held-out networks.
        memory: Bound of bytes.
        each: Bytes of one network in training.
        team: Divides the networks among its members; all get the same evaluations.
        progress: Called after every test of a group.

    Returns:
        One evaluation of all networks for each entry of ``after``.
    """
    if networks < 1:
        raise ConfigError(f"networks is {networks}.", "Set networks to at least 1.")
    tester, tests = Tester(architecture, data, objective), sorted(set(after))
    mine = team.share(range(networks))
    report = _Report(progress, len(mine) * len(tests), objective.metric)
    drawing = Lock()

    def work(group: range, wanted: Callable[[], None]) -> list[Sums]:
        numbers = mine[group.start : group.stop]
        with drawing:  # what draws the weights may not be made for several threads
            theta0 = sample(networks_for(seed, "held-out network", numbers))
        tested: list[Sums] = []
        with torch.no_grad():
            for t, weights in enumerate(learn(theta0, numbers)):
                wanted()
                if t == tests[len(tested)]:
                    tested.append(tester(weights, wanted))
                    report(tested[-1].metrics(len(data)), last=t == tests[-1])
                if len(tested) == len(tests):
                    break
        return tested

    found: list[list[Sums]] = [[tester.nothing] for _ in tests]
    if mine:
        groups = Groups.within(
            memory, len(mine), each=each, besides=tester.bytes, threads=tester.threads
        )
        found = in_order(groups.each(work))
    everyone = dict(zip(tests, _gather(team, networks, found), strict=True))
    return [tester.evaluation([everyone[t]], seed, t) for t in after]


def _gather(team: Team, networks: int, found: list[list[Sums]]) -> list[Sums]:
    """The sums of all networks, from every member's groups; one for each test."""
    tests = [Sums(*map(torch.cat, zip(*groups, strict=True))) for groups in found]
    rows = torch.stack([torch.cat([s.scores, s.losses[:, None]], 1) for s in tests], 1)
    gathered = team.gather(range(networks), rows).unbind(1)
    return [Sums(one[:, :-1], one[:, -1]) for one in gathered]


class _Report:
    """Tells how many networks have been tested, from any thread."""

    def __init__(self, progress: ProgressCallback, total: int, metric: str) -> None:
        self._progress, self._total, self._metric = progress, total, metric
        self._lock, self._done, self._values = Lock(), 0, list[float]()

    def __call__(self, values: list[float], *, last: bool) -> None:
        with self._lock:
            self._done += len(values)
            self._values += values if last else []
            mean = {self._metric: sum(self._values) / len(self._values)} if self._values else {}
            self._progress(Progress("evaluating", self._done, self._total, mean))
