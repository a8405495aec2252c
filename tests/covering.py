"""Few combinations of many choices, in which everything occurs together that may interact."""

import itertools
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pytest
from _pytest.mark import ParameterSet

Case = tuple[Any, ...]
Parts = set[tuple[tuple[int, Any], ...]]


def covering(choices: Sequence[Collection[Any]], together: int = 2) -> Iterator[Case]:
    """Few cases in which every pair of choices occurs: each takes as many new pairs as it can.

    Args:
        choices: What there is to choose from in each place of a case.
        together: How many choices occur in all their combinations: 2 are pairs.
    """
    left: Parts = {
        tuple(zip(places, chosen, strict=True))
        for places in itertools.combinations(range(len(choices)), together)
        for chosen in itertools.product(*(choices[n] for n in places))
    }
    while left:
        case = dict(min(left))
        for n in [n for n in range(len(choices)) if n not in case]:
            case[n] = max(choices[n], key=lambda one: len(left & parts({**case, n: one}, together)))
        left -= parts(case, together)
        yield tuple(case[n] for n in range(len(choices)))


def parts(case: dict[int, Any], together: int = 2) -> Parts:
    """The pairs of choices in a case, by their places."""
    return {*itertools.combinations(sorted(case.items()), together)}


def combinations(*choices: Collection[Any], together: int = 2) -> list[ParameterSet]:
    """All cases for ``parametrize``; those that few others cover are ``thorough``."""
    few = set(covering(choices, together))
    return [
        pytest.param(*case, marks=() if case in few else pytest.mark.thorough)
        for case in itertools.product(*choices)
    ]
