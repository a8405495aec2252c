"""Does an artefact still reach what it claims?"""

import math
from dataclasses import dataclass
from typing import Any

from torch import nn

from ..artefact import Claim, DistilledData
from ..core.device import DeviceLike
from ..core.grad_mode import with_gradients
from ..core.values import short
from ..data import LabelledData, as_data
from ..data.running_statistics import BATCH, DISTILLED, name_of
from ..engine.side_by_side import DEFAULT_BYTES
from ..errors import ArtefactError, DataDistillError, DataError, PoolError
from ..given import typed
from ..hints import command
from ..progress import ProgressCallback
from .evaluating import evaluate
from .limits import CONFIDENCE, FEW, FEW_EXAMPLES, MOST, MOST_NETWORKS
from .result import Evaluation
from .validation import Validation

EVALUATE = command("evaluate", "ARTEFACT")


class ClaimError(DataDistillError):
    """An artefact does not reach what it claims."""

    exit_code = 1


@dataclass(frozen=True)
class Verification:
    """A claim, and what was found when it was measured again.

    The networks are the same, so on the same machine the figure is too; on another, rounding
    turns a few answers, and now and then a whole network. The claim holds if the mean is not worse
    than claimed by more than :attr:`tolerance`, the larger of

    - what rounding may do to any network: 3 test examples or 0.1 % of them, whichever is more (for
      other metrics, 0.1 % of the claimed mean);
    - the one-sided 99 % bound of Student's t for the mean of so many networks, with the standard
      deviation that was measured, but at most 1 point (1 % of the claimed mean).

    One network has no standard deviation, and only the first applies. The claimed standard
    deviation widens nothing: it has to be near the measured one itself.

    Attributes:
        claim: What the artefact claims.
        found: What was measured.
        higher_is_better: Whether a higher metric is a better one.
    """

    claim: Claim
    found: Evaluation
    higher_is_better: bool

    @property
    def rounding(self) -> float:
        """What rounding may do to the figure of any network."""
        if self.claim.is_accuracy:
            return max(FEW_EXAMPLES / self.claim.examples, FEW)
        return FEW * abs(self.claim.mean)

    @property
    def spread(self) -> float:
        """The bound of Student's t, from the networks that were measured."""
        most = MOST if self.claim.is_accuracy else MOST * abs(self.claim.mean)
        networks = len(self.found.values)
        if networks == 1 or not math.isfinite(self.found.std):
            return 0.0
        return min(most, quantile(networks) * self.found.std / math.sqrt(networks))

    @property
    def tolerance(self) -> float:
        """By how much the mean may be worse than claimed."""
        return max(self.rounding, self.spread)

    @property
    def holds(self) -> bool:
        """Whether the artefact reaches what it claims."""
        worse = self.claim.mean - self.found.mean
        # Networks that diverged have no mean, and nothing holds for them.
        reached = (worse if self.higher_is_better else -worse) <= self.tolerance
        return reached and self.std_holds

    @property
    def std_holds(self) -> bool:
        """Whether the claimed standard deviation is near the one that was measured."""
        near = max(2 * self.tolerance, self.found.std / 2)
        return abs(self.claim.std - self.found.std) <= near

    def __repr__(self) -> str:
        says = "holds" if self.holds else "does not hold"
        return f"<Verification: {short(f'it {says}: claimed {self.claim}, found {self.found}')}>"

    def __str__(self) -> str:
        says = "holds" if self.holds else "does not hold"
        lines = [
            f"claimed: {self.claim}",
            f"found:   {self.found}",
            f"The claim {says} within {self._figure(self.tolerance)} ({self._reason()}).",
        ]
        if not self.std_holds:
            lines.insert(
                2,
                f"The claimed standard deviation, {self._figure(self.claim.std)}, is not the "
                f"measured one, {self._figure(self.found.std)}.",
            )
        return "\n".join(lines)

    def _reason(self) -> str:
        if self.spread > self.rounding:
            networks = len(self.found.values)
            capped = ", at most 1 point" if self.claim.is_accuracy else ", at most 1 %"
            return (
                f"{100 * CONFIDENCE:.0f} % confidence over {networks} networks, "
                f"{quantile(networks):.2f} × {self._figure(self.found.std)} / √{networks}"
                f"{capped}"
            )
        if not self.claim.is_accuracy:
            return "rounding: 0.1 % of the claim"
        few = FEW_EXAMPLES / self.claim.examples
        return f"rounding: {f'{FEW_EXAMPLES} test examples' if few > FEW else '0.1 %'}"

    def _figure(self, value: float) -> str:
        return f"{100 * value:.2f} points" if self.claim.is_accuracy else f"{value:.2g}"


def quantile(networks: int) -> float:
    """Student's t: what the mean of so many networks exceeds by chance in 1 of 100 cases."""
    from scipy.special import stdtrit  # slow to import

    return float(stdtrit(networks - 1, CONFIDENCE))


def claim_of(distilled: DistilledData) -> Claim:
    """What distilled data claim; refuses those that claim nothing."""
    if distilled.claim is None:
        raise ArtefactError(
            "The artefact claims no figure.",
            f"Measure one: {EVALUATE}; in Python, dd.evaluate(…).claim().",
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
    if (
        claim.split != "validation"
        or not (isinstance(share, float) and 0 < share < 1)
        or not isinstance(seed, int)
    ):
        raise ArtefactError(
            f"The claim was measured on the {claim.split} split of {claim.data}, which cannot "
            "be made again from what the artefact says.",
            f"Measure the test split: {EVALUATE}",
        )
    return train.hold_out(share, seed)[1]


def work_of(distilled: DistilledData) -> str:
    """What it takes to measure a claim again, in words."""
    claim, updates = claim_of(distilled), distilled.learning_rates.numel()
    return (
        f"{claim.networks:,} network(s), {updates:,} update(s) each, tested on "
        f"{claim.examples:,} examples"
    )


def check_measurable(distilled: DistilledData, most_networks: int = MOST_NETWORKS) -> None:
    """Refuses a claim over more networks than anybody trains, or of another metric."""
    claim = claim_of(distilled)
    if claim.networks > most_networks:
        raise ArtefactError(
            f"To measure the claim again takes {work_of(distilled)}; the most is "
            f"{most_networks:,} networks.",
            f"Measure fewer: {EVALUATE}; or allow as many with --most-networks.",
        )
    if claim.metric != distilled.objective.metric:
        raise ArtefactError(
            f"The claim is of the metric {claim.metric[:100]!r}, but the objective is judged by "
            f"the {distilled.objective.metric}.",
            f"Measure the artefact: {EVALUATE}",
        )


@typed
@with_gradients
def verify(
    distilled: DistilledData,
    data: Any,
    *,
    module: nn.Module | None = None,
    statistics: Any = None,
    device: DeviceLike = "auto",
    memory: int = DEFAULT_BYTES,
    most_networks: int = MOST_NETWORKS,
    progress: bool | ProgressCallback = False,
) -> Verification:
    """Measures again what distilled data claim, on the networks that the claim names.

    Args:
        distilled: The distilled data.
        data: The real data that the claim was measured on; see :func:`claimed_split`.
        module: The network, where it is not built in.
        statistics: The real data that the claim names for running statistics, if it does.
        device: Where to compute.
        memory: Bound of bytes.
        most_networks: A claim over more networks is refused: the artefact says how many.
        progress: True for a bar, or a callback, called after every group of networks.
    """
    claim, data = claim_of(distilled), as_data(data, split="test")
    check_measurable(distilled, most_networks)
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
            f"Name its folder: --pool DIR; or measure with another pool: {EVALUATE} --pool DIR",
        )
    statistics = _claimed_statistics(claim, statistics)
    if claim.split == "validation":
        network = distilled.network(module, device)
        found = Validation(data, network, claim.networks).measure(distilled, statistics)
    else:
        found = evaluate(
            distilled,
            data,
            networks=claim.networks,
            module=module,
            seed=claim.seed,
            statistics=statistics,
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
