"""What a run knows between two outer steps."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from ...artefact import Claim
from ...core.distilled import Steps
from ...core.distiller import DistillerState
from ...core.values import one_line, same
from ...engine import Engines
from ..settings import Keep
from .snapshots import Snapshots

NOISE = 2.0
"""Standard errors by which the best must beat the last, to be kept by ``keep=auto``."""


@dataclass(frozen=True)
class Measured:
    """Distilled data of some outer step, and what they reach on held-out training data.

    Attributes:
        outer_step: Which.
        steps: The distilled data.
        reached: What they reach.
        stored: The parameters that an artefact stores in place of the inputs, if it does.
    """

    outer_step: int
    steps: Steps
    reached: Claim
    stored: Mapping[str, Tensor] = field(default_factory=dict[str, Tensor])

    __repr__ = one_line
    __eq__ = same

    def noise(self) -> float:
        """The standard error of what they reach: over networks, and over examples if it is a share.

        A share p of N examples that are answered correctly has the variance p (1 − p) / N.
        """
        claim = self.reached
        variance = claim.std**2 / claim.networks
        if claim.metric.startswith("accuracy"):
            variance += claim.mean * (1 - claim.mean) / claim.examples
        return math.sqrt(variance)

    def beats(self, other: "Measured", *, higher_is_better: bool, errors: float = 0.0) -> bool:
        """Whether these are better, by more than so many standard errors of the difference."""
        gain = self.reached.mean - other.reached.mean
        margin = errors * math.hypot(self.noise(), other.noise()) if errors else 0.0
        return (gain if higher_is_better else -gain) > margin


@dataclass(frozen=True)
class RunState:
    """The distiller's state, the best and the last measurement, and the time spent.

    Attributes:
        distiller: Everything that changes from one outer step to the next.
        best: The best distilled data so far on held-out training data.
        last: The last that were measured.
        seconds: Time spent on outer steps, by all processes that worked on the run.
        engines: The engines that computed the outer steps, in order; none if not known.
        snapshots: Pictures of the distilled images along the way.
    """

    distiller: DistillerState
    best: Measured | None = None
    last: Measured | None = None
    seconds: float = 0.0
    engines: Engines = ()
    snapshots: Snapshots = field(default_factory=Snapshots)

    __repr__ = one_line
    __eq__ = same

    @property
    def outer_step(self) -> int:
        """How many outer steps are done."""
        return self.distiller.outer_step

    @property
    def reached(self) -> Measured | None:
        """The measurement of the last outer step, if it was made."""
        return self.last if self.last and self.last.outer_step == self.outer_step else None

    def measured(self, last: Measured | None, *, higher_is_better: bool) -> "RunState":
        """The same with a measurement of its last outer step, which may be the best."""
        if last is None:
            return self
        better = self.best is None or last.beats(self.best, higher_is_better=higher_is_better)
        return replace(self, best=last if better else self.best, last=last)

    def keeps_best(self, keep: Keep, *, higher_is_better: bool) -> bool:
        """Whether the best distilled data are the result of a run rather than the last."""
        best, last = self.best, self.reached
        if best is None or keep == "last":
            return False
        if keep == "best" or last is None:
            return True
        return best.beats(last, higher_is_better=higher_is_better, errors=NOISE)

    def to(self, device: torch.device) -> "RunState":
        """The same with the distiller's tensors on a device."""
        old = self.distiller

        def move(tree: Mapping[str, Tensor]) -> dict[str, Tensor]:
            return {name: tensor.to(device) for name, tensor in tree.items()}

        distiller = replace(
            old,
            parameters=move(old.parameters),
            constants=move(old.constants),
            average=move(old.average),
            pool=move(old.pool),
            adam=replace(old.adam, first=move(old.adam.first), second=move(old.adam.second)),
        )
        return replace(self, distiller=distiller)
