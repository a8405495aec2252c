"""Optimised real images: of many random sets, those that train networks best."""

from collections.abc import Callable

DRAWN = 50
KEPT = 10


def optimised_real(
    score: Callable[[int], float], *, drawn: int = DRAWN, kept: int = KEPT
) -> list[int]:
    """Returns the numbers of the best sets of random real images, best first.

    Args:
        score: How good networks are on *training* data once they are trained on the set of this
            number: the seed of :func:`random_real`. Higher is better.
        drawn: How many sets to draw, numbers 0 to ``drawn`` − 1.
        kept: How many to keep.
    """
    scores = [score(number) for number in range(drawn)]
    return sorted(range(drawn), key=lambda number: (-scores[number], number))[:kept]
