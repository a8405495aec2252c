"""Optimised real images: of many random sets, those that train networks best."""

from collections.abc import Callable

from ..core.distilled import Steps
from ..data import LabelledData
from .baseline import Baseline, Stream
from .layout import Layout
from .random_real import RandomReal


class OptimisedReal(Baseline, name="optimised real"):
    """Random real images, of which a table reports the sets that are best on training data."""

    selects_examples = True
    candidates = RandomReal()

    def steps(self, data: LabelledData, layout: Layout, stream: Stream) -> Steps:
        """Draws a candidate."""
        return RandomReal().steps(data, layout, stream)


def best_sets(score: Callable[[int], float], *, drawn: int, kept: int) -> list[int]:
    """Returns the numbers of the best sets of images, best first.

    Args:
        score: The score of networks on *training* data once they are trained on the set of this
            number. Higher is better.
        drawn: How many sets to draw, numbers 0 to ``drawn`` − 1.
        kept: How many to keep.
    """
    scores = [score(number) for number in range(drawn)]
    return sorted(range(drawn), key=lambda number: (-scores[number], number))[:kept]
