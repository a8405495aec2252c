"""A time budget: when a run must end, and how many outer steps fit until then."""

import math
import time
from dataclasses import dataclass

REPLAN = 0.02
"""Change of the number of outer steps, as a share of it, from which a run is planned anew."""


@dataclass
class TimeBudget:
    """The time that outer steps have, and the pace at which they are made.

    The number of outer steps is planned before the run. If the machine becomes slower or faster,
    it is planned again at every measurement on held-out data, so that the learning rates have
    decayed when the time is up.

    Attributes:
        until: The reading of ``time.monotonic`` at which the outer steps end.
        at_most: The largest number of outer steps, if the user has named one.
    """

    until: float
    at_most: int | None = None
    _since: tuple[float, int] | None = None

    def is_up(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() >= self.until

    def iterations(self, outer_step: int, planned: int) -> int:
        """How many outer steps fit in all, at the pace since the last call.

        Args:
            outer_step: How many are done.
            planned: How many are planned; the result if little has changed.
        """
        now, before = time.monotonic(), self._since
        self._since = (now, outer_step)
        if before is None or outer_step <= before[1]:
            return planned
        pace = (now - before[0]) / (outer_step - before[1])
        fit = outer_step + max(1, math.floor((self.until - now) / pace))
        fit = fit if self.at_most is None else min(fit, self.at_most)
        return planned if abs(fit - planned) <= REPLAN * planned else max(fit, outer_step)
