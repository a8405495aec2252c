"""The paper's comparison for poisoning: real images with modified labels as the attack."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter

from ..baselines import Baseline, Layout
from ..core.distilled import Steps
from ..core.values import one_line
from ..data import LabelledData
from ..data.fingerprint import data_hash
from ..data.normalizing import like
from ..evaluation.poisoning import Attack, Attacked, Victims, attack
from ..evaluation.rate_search import LEARNING_RATES, Choice, Rate, scheduled
from ..evaluation.result import ClassScore
from ..given import typed
from ..models.description import weights_hash
from ..progress import Progress, ProgressCallback
from ..showing import shown
from ..version import __version__
from .image_sets import HELD_OUT, Counts, ImageBaselines, ImageSets, baselines_of_table
from .result_cache import ResultCache, rule_key

TURNED = 0.1
"""Share of the attacked class that a learning rate must turn to be considered."""
RATES: tuple[Rate, ...] = ("learned", *LEARNING_RATES)
FIGURES = TypeAdapter(Attacked)
DEFAULTS = Counts()


@dataclass(frozen=True)
class PoisoningRow:
    """An attack with one kind of images.

    Attributes:
        name: Which images.
        figures: All networks after it, for all sets of images one after the other.
        rate: The learning rate that was chosen; None if it is learned with the images.
        turns: Whether a learning rate turned enough of the attacked class; if none did, the one
            that turned most was taken.
        sets: How many sets.
    """

    name: str
    figures: Attacked
    rate: Rate | None
    turns: bool = True
    sets: int = 1

    __repr__ = one_line


class ChosenRate(NamedTuple):
    """The learning rate of an attack, and whether it turns enough of the attacked class."""

    rate: Rate
    turns: bool


@dataclass(frozen=True)
class AttackingImages(ImageBaselines[ChosenRate, Attacked]):
    """Attacks by the images of baselines, those of the attacked class labelled as the target.

    Attributes:
        distilled: Steps of distilled data for poisoning.
        rest: Real training data, without those that are held out.
        victims: The networks that are attacked, and the test data.
        choosing: Other networks, and held-out training data, on which a rate is chosen.
        picking: Other networks, and training data, on which the best sets are picked.
        cache: The finished parts.
        progress: Called along the way.
    """

    distilled: Steps
    rest: LabelledData
    victims: Victims
    choosing: Victims
    picking: Victims
    cache: ResultCache
    progress: ProgressCallback

    def sets_of(self, baseline: Baseline) -> ImageSets:
        """The sets of images of a baseline, with modified labels."""
        layout = Layout.of(self.victims.network, *self.distilled.inputs.shape[:2])

        def make(baseline: Baseline, number: int) -> Steps:
            real = baseline.draw(self.rest, layout, number)
            return replace(real, labels=self.victims.objective.modified(real.labels))

        return ImageSets(baseline, make)

    def row(self, sets: ImageSets) -> PoisoningRow:
        """The row of a baseline."""
        chosen, found = self.measure(sets)
        return PoisoningRow(sets.name, _joined(found), chosen.rate, chosen.turns, len(found))

    def choose(self, sets: ImageSets, row: str) -> ChosenRate:
        """The rate of the highest accuracy on modified labels among those that turn enough."""
        turned: dict[Rate, float] = {}
        modified: dict[Rate, float] = {}
        for done, rate in enumerate(RATES):
            found = [self._attack(sets, n, rate, self.choosing) for n in self.numbers(sets)]
            turned[rate] = sum(one.success.mean for one in found) / len(found)
            modified[rate] = sum(one.modified.mean for one in found) / len(found)
            self.progress(Progress(f"choosing: {row}", done + 1, len(RATES)))
        enough: list[Rate] = [rate for rate in RATES if turned[rate] >= TURNED]
        if not enough:
            return ChosenRate(max(RATES, key=lambda rate: turned[rate]), turns=False)
        return ChosenRate(max(enough, key=lambda rate: modified[rate]), turns=True)

    def score(self, sets: ImageSets, number: int, choice: ChosenRate, row: str) -> float:
        """The accuracy on modified labels; sets that do not turn enough come last."""
        found = self._attack(sets, number, choice.rate, self.picking)
        self.progress(Progress(f"picking: {row}", number + 1, self.counts.drawn))
        return found.modified.mean - (found.success.mean < TURNED)

    def figures(
        self, sets: ImageSets, numbers: Sequence[int], choice: ChosenRate, row: str
    ) -> list[Attacked]:
        """What some sets do to the networks that are reported."""
        found: list[Attacked] = []
        for number in numbers:
            found.append(self._attack(sets, number, choice.rate, self.victims))
            self.progress(Progress(f"attacking: {row}", len(found), len(numbers)))
        return found

    def _attack(self, sets: ImageSets, number: int, rate: Rate, victims: Victims) -> Attacked:
        """What a set of images does to networks, from the cache if it is there."""
        learned = self.distilled.learning_rates
        key: dict[str, object] = {
            "poisoning": sets.name,
            **sets.key(number),
            "rates": learned.tolist() if rate == "learned" else rate,
            "networks": victims.networks,
            "seed": victims.seed,
            "on": [victims.data.split, len(victims.data)],
        }

        def compute() -> Attacked:
            steps = scheduled(sets[number], Choice(rate, len(learned)), learned)
            return attack(steps, victims).after

        return self.cache.get(key, compute, FIGURES)


@typed
def poisoning_table(
    distilled: Steps,
    train: LabelledData,
    victims: Victims,
    *,
    baselines: Sequence[Baseline | str] = (),
    counts: Counts = DEFAULTS,
    results: Path | None = None,
    progress: bool | ProgressCallback = False,
) -> tuple[Attack, list[PoisoningRow]]:
    """Compares an attack by distilled data with attacks by real images.

    Each baseline makes the same number of updates with as many images, those of the attacked class
    labelled as the target. Its learning rate is chosen on held-out training data from the paper's
    and the learned one: the highest accuracy on modified labels among those that turn at least 10 %
    of the attacked class.

    Args:
        distilled: Steps of distilled data for poisoning.
        train: Real training data.
        victims: The networks, and the test data.
        baselines: Your own baselines, as for :func:`datadistill.tables.baseline_table`.
        counts: How many sets and networks.
        results: A ``results.json`` in which every finished part is saved at once, so that an
            interrupted call can be continued; other sections of the file stay.
        progress: True for bars, or a callback, called along the way.

    Returns:
        The attack by distilled data, and one row for every kind of images, distilled first.
    """
    compared = baselines_of_table(baselines)
    train = like(victims.data, train)
    rest, held_out = train.hold_out(HELD_OUT, seed=0)
    choosing = victims.others(
        held_out.sample(counts.examples, "choosing poisoning"),
        min(victims.networks, counts.choosing_networks),
    )
    picking = choosing.others(
        rest.sample(counts.examples, "optimised poisoning"),
        min(victims.networks, counts.picking_networks),
    )
    cache = ResultCache.read(results, _context(distilled, train, victims))
    with shown(progress) as show:
        images = AttackingImages(counts, distilled, rest, victims, choosing, picking, cache, show)
        sets = [images.sets_of(baseline) for baseline in compared]
        found = attack(distilled, victims)
        rows = [images.row(one) for one in sets]
    return found, [PoisoningRow("distilled", found.after, None), *rows]


def _context(distilled: Steps, train: LabelledData, victims: Victims) -> dict[str, object]:
    """All that every figure depends on; those of real images do not depend on the distilled."""
    network = victims.network
    # One network stands for all of them.
    theta0 = victims.sample(range(1))
    return {
        "objective": victims.objective.text,
        "schedule": [*distilled.learning_rates.shape, distilled.inputs.shape[1]],
        **rule_key(victims.rule),
        "network": [network.name, weights_hash({**network.constants, **theta0})],
        **({"statistics": victims.statistics.name} if victims.statistics.name else {}),
        "device": network.device.type,
        "train": data_hash(train),
        "test": data_hash(victims.data),
        "datadistill": __version__,
    }


def _joined(sets: Sequence[Attacked]) -> Attacked:
    """The figures of all networks for all sets."""

    def join(scores: Sequence[ClassScore]) -> ClassScore:
        values = tuple(value for one in scores for value in one.values)
        return replace(scores[0], values=values)

    return Attacked(
        join([one.success for one in sets]),
        join([one.modified for one in sets]),
        join([one.others for one in sets]),
        tuple(join(column) for column in zip(*(one.by_class for one in sets), strict=True)),
    )
