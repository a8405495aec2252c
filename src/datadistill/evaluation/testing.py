"""What trained networks reach on real data."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from ..core.network import Network, Weights
from ..core.objective import Objective
from ..data import LabelledData
from ..data.running_statistics import Statistics
from ..engine.groups import Groups
from ..engine.side_by_side import DEFAULT_BYTES, SideBySide
from ..engine.testing import Sums, Tester
from .result import ClassScore, Evaluation


def evaluation_of(
    sums: Sums,
    tester: Tester,
    data: LabelledData,
    objective: Objective,
    *,
    seed: int = 0,
    updates: int | None = None,
) -> Evaluation:
    """The figures of networks that were tested.

    Args:
        sums: What the tester found.
        tester: What tested them.
        data: The real data it tested on.
        objective: What was measured.
        seed: Which networks they are.
        updates: After how many updates they were tested.
    """
    return Evaluation(
        values=tuple((sums.scores.sum(1) / len(data)).tolist()),
        losses=tuple((sums.losses / len(data)).tolist()),
        metric=objective.metric,
        data=data.name,
        split=data.split,
        examples=len(data),
        seed=seed,
        by_class=_by_class(sums.scores, tester.counts, data) if tester.has_classes else (),
        updates=updates,
    )


def joined(groups: Sequence[Sums]) -> Sums:
    """The sums of groups of networks, in their order."""
    return Sums(*map(torch.cat, zip(*groups, strict=True)))


def _by_class(scores: Tensor, counts: Tensor, data: LabelledData) -> tuple[ClassScore, ...]:
    names = data.class_names
    return tuple(
        ClassScore(
            names[number] if names else str(number),
            count,
            tuple((scores[:, number] / count).tolist()),
        )
        for number, count in enumerate(counts.tolist())
        if count
    )


def test_networks(
    network: Network,
    weights: Weights,
    data: LabelledData,
    objective: Objective,
    statistics: Statistics,
) -> Evaluation:
    """Tests J trained networks on all real data.

    Args:
        network: The architecture.
        weights: Their stacked weights.
        data: The real data.
        objective: What is measured.
        statistics: What batch normalisation uses.
    """
    weights = statistics.added_to(weights, network)
    networks = SideBySide(network, data.example())
    tester = Tester(networks, data, objective)
    groups = Groups.within(
        DEFAULT_BYTES,
        len(next(iter(weights.values()))),
        each=1,  # the weights are there already
        besides=tester.bytes,
        threads=tester.threads,
    )

    def test(numbers: range, wanted: Callable[[], None]) -> Sums:
        chosen = slice(numbers.start, numbers.stop)
        return tester({name: w[chosen] for name, w in weights.items()}, wanted)

    found = evaluation_of(joined(groups.each(test)), tester, data, objective)
    return replace(found, statistics=statistics.name)
