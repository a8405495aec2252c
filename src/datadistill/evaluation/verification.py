"""Does an artefact still reach what it claims?"""

import math
from dataclasses import dataclass
from typing import Any

from torch import nn

from ..artefact import Claim, DistilledData
from ..artefact.statistics import BATCH, DISTILLED, name_of
from ..data import LabelledData, as_data
from ..engine.side_by_side import DEFAULT_BYTES
from ..errors import ArtefactError, DataDistillError, DataError, PoolError
from ..progress import ProgressCallback, silent
from .evaluating import evaluate
from .result import Evaluation

STANDARD_ERRORS = 2
FEW_EXAMPLES = 3  # whose answer rounding may turn, or one in a thousand where that is more
FEW = 1e-3  # of a mean squared error


class ClaimError(DataDistillError):
    """An artefact does not reach what it claims."""

    exit_code = 1


@dataclass(frozen=True)
class Verification:
    """A claim, and what was found when it was measured again.

    The networks are the very same, so on the same machine the figure is too; on another, rounding
    turns a few answers. The claim holds if the mean is not worse than claimed by more than

    - two standard errors of the claimed mean, 2·std/√networks, or
    - what rounding may do to a network: 3 test examples or 0.1 % of them, whichever is more (for
      mean squared errors, 0.1 % of the claimed one),

    whichever is more. One network has no standard error.

    Attributes:
        claim: What the artefact claims.
        found: What was measured.
        higher_is_better: Whether a higher metric is a better one.
    """

    claim: Claim
    found: Evaluation
    higher_is_better: bool

    @property
    def tolerance(self) -> float:
        """By how much the mean may be worse than claimed."""
        claim = self.claim
        rounding = FEW * abs(claim.mean)
        if claim.metric.startswith("accuracy"):
            rounding = max(FEW_EXAMPLES / claim.examples, FEW)
        return max(rounding, STANDARD_ERRORS * claim.std / math.sqrt(claim.networks))

    @property
    def holds(self) -> bool:
        """Whether the artefact reaches what it claims."""
        worse = self.claim.mean - self.found.mean
        # Networks that diverged have no mean, and nothing holds for them.
        return (worse if self.higher_is_better else -worse) <= self.tolerance

    def __str__(self) -> str:
        percent = self.claim.metric.startswith("accuracy")
        margin = f"{100 * self.tolerance:.2f} points" if percent else f"{self.tolerance:.2g}"
        says = "holds" if self.holds else "does not hold"
        return f"claimed: {self.claim}\nfound:   {self.found}\nThe claim {says} within {margin}."


def claim_of(distilled: DistilledData) -> Claim:
    """What distilled data claim; refuses those that claim nothing."""
    if distilled.claim is None:
        raise ArtefactError(
            "The artefact claims no figure.",
            "Measure one with datadistill evaluate, or dd.evaluate(…).claim().",
        )
    return distilled.claim


def claimed_split(
    distilled: DistilledData, train: LabelledData, test: LabelledData
) -> LabelledData:
    """Returns the part of a data set that the claim was measured on.

    Validation data are held out again as distillation did: by its seed, and by the share of every
    class that its configuration names.
    """
    claim, configuration = claim_of(distilled), distilled.header.configuration
    if claim.split == test.split:
        return test
    if claim.split == train.split:
        return train
    share, seed = configuration.get("validation"), configuration.get("seed")
    if claim.split != "validation" or not isinstance(share, float) or not isinstance(seed, int):
        raise ArtefactError(
            f"The claim was measured on the {claim.split} split of {claim.data}, which cannot "
            "be made again from what the artefact says.",
            "Measure the test split: datadistill evaluate ARTEFACT.",
        )
    return train.hold_out(share, seed)[1]


def verify(
    distilled: DistilledData,
    data: Any,
    *,
    module: nn.Module | None = None,
    statistics: Any = None,
    device: str = "auto",
    memory: int = DEFAULT_BYTES,
    progress: ProgressCallback = silent,
) -> Verification:
    """Measures again what distilled data claim, on the networks that the claim names.

    Args:
        distilled: The distilled data.
        data: The real data that the claim was measured on; see :func:`claimed_split`.
        module: The network, where it is not built in.
        statistics: The real data that the claim names for running statistics, if it does.
        device: Where to compute.
        memory: Bound of bytes.
        progress: Called after every group of networks.
    """
    claim, data = claim_of(distilled), as_data(data, split="test")
    if len(data) != claim.examples:
        raise DataError(
            f"The claim was measured on {claim.examples} examples of {claim.data}, but the "
            f"{data.split} split of {data.name} has {len(data)}.",
            "Give the data that the claim names.",
        )
    if not distilled.has_own_pool:
        wanted = distilled.header.initialization.pool
        raise PoolError(
            f"The claim was measured on networks of the pool {wanted and wanted.name}.",
            "Name its folder: --pool DIR; with another pool, use datadistill evaluate.",
        )
    found = evaluate(
        distilled,
        data,
        networks=claim.networks,
        module=module,
        seed=claim.seed,
        statistics=_claimed_statistics(claim, statistics),
        device=device,
        memory=memory,
        progress=progress,
    )
    return Verification(claim, found, distilled.objective.higher_is_better)


def _claimed_statistics(claim: Claim, given: Any) -> Any:
    """What the running statistics are measured on, as the claim has it."""
    if claim.statistics in (None, DISTILLED):
        return None if claim.statistics else BATCH
    if given is None or name_of(as_data(given)) != claim.statistics:
        raise DataError(
            f"The claim was measured with running statistics of {claim.statistics}.",
            "Pass these data as statistics.",
        )
    return given
