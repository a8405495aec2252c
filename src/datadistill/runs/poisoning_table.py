"""The paper's comparison for poisoning: real images with modified labels as the attack."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from ..baselines import average_real, k_means, optimised_real, random_real
from ..core.distilled import Steps
from ..core.network import Network
from ..core.poisoning import Poisoning
from ..core.random import stream
from ..data import LabelledData
from ..errors import ConfigError
from ..evaluation.poisoning import Attack, Attacked, Victims, attack
from ..evaluation.result import ClassScore
from ..evaluation.search import LEARNING_RATES, Choice, Rate, scheduled
from ..progress import Progress, ProgressCallback, silent

TURNED = 0.1
"""Share of the attacked class that a learning rate must turn to be considered."""
HELD_OUT = 0.1  # of the training data, to choose on
OPTIMISED_EXAMPLES = 1024  # training examples by which sets are chosen


@dataclass(frozen=True)
class PoisoningCounts:
    """How much is computed; the defaults are the paper's.

    Attributes:
        sets: Sets of random real images, and runs of k-means.
        drawn: Sets of which the optimised ones are chosen.
        kept: How many of these are kept.
        choosing: Networks on which learning rates and sets are chosen.
    """

    sets: int = 10
    drawn: int = 50
    kept: int = 10
    choosing: int = 20


@dataclass(frozen=True)
class PoisoningRow:
    """An attack with one kind of images.

    Attributes:
        name: Which images.
        figures: All networks after it, for all sets of images one after the other.
        rate: The learning rate that was chosen; None where it is learned with the images.
        turns: Whether a learning rate turned enough of the attacked class; if none did, the one
            that turned most was taken.
        sets: How many sets.
    """

    name: str
    figures: Attacked
    rate: Rate | None
    turns: bool = True
    sets: int = 1


@dataclass(frozen=True)
class _Bench:
    """What all baselines share."""

    distilled: Steps
    objective: Poisoning
    network: Network
    rest: LabelledData
    choosing: Victims
    victims: Victims
    counts: PoisoningCounts
    progress: ProgressCallback

    def steps(self, real: Steps, rate: Rate) -> Steps:
        """Real images with the attacked class labelled as the target, and a learning rate."""
        labels = self.objective.modified(real.labels)
        learned = self.distilled.learning_rates
        return scheduled(replace(real, labels=labels), Choice(rate, len(learned)), learned)

    def layout(self) -> dict[str, int]:
        """As many images of every class and as many steps as the distilled data have."""
        classes = self.objective.classes(self.network.outputs)
        steps, images = self.distilled.inputs.shape[:2]
        if images % classes:
            raise ConfigError(
                f"A step of these distilled data has {images} images for {classes} classes.",
                "Evaluate them without baselines.",
            )
        return {"classes": classes, "steps": steps, "images_per_class": images // classes}

    def choose(self, name: str, sets: Sequence[Steps]) -> tuple[Rate, bool]:
        """The rate of the highest accuracy on modified labels among those that turn enough."""
        rates: tuple[Rate, ...] = ("learned", *LEARNING_RATES)
        turned: dict[Rate, float] = {}
        modified: dict[Rate, float] = {}
        for done, rate in enumerate(rates):
            found = [attack(self.steps(real, rate), self.choosing).after for real in sets]
            turned[rate] = sum(one.success.mean for one in found) / len(found)
            modified[rate] = sum(one.modified.mean for one in found) / len(found)
            self.progress(Progress(f"choosing: {name}", done + 1, len(rates)))
        enough: list[Rate] = [rate for rate in rates if turned[rate] >= TURNED]
        if not enough:
            return max(rates, key=lambda rate: turned[rate]), False
        return max(enough, key=lambda rate: modified[rate]), True

    def row(self, name: str, sets: Sequence[Steps], chosen: tuple[Rate, bool]) -> PoisoningRow:
        rate, turns = chosen
        found = [attack(self.steps(real, rate), self.victims).after for real in sets]
        return PoisoningRow(name, _joined(found), rate, turns, len(sets))


def poisoning_table(
    distilled: Steps,
    train: LabelledData,
    victims: Victims,
    *,
    counts: PoisoningCounts | None = None,
    progress: ProgressCallback = silent,
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
        counts: How much is computed.
        progress: Called along the way.

    Returns:
        The attack by distilled data, and one row for every kind of images, distilled first.
    """
    counts = counts or PoisoningCounts()
    rest, validation = train.hold_out(HELD_OUT, seed=0)
    choosing = victims.others(validation, min(victims.networks, counts.choosing))
    bench = _Bench(
        *(distilled, victims.objective, victims.network, rest, choosing, victims, counts, progress)
    )
    found = attack(distilled, victims)
    rows = [PoisoningRow("distilled", found.after, None)]
    layout, network = bench.layout(), victims.network
    random = [random_real(rest, network, **layout, seed=n) for n in range(counts.sets)]
    chosen = bench.choose("random real", random)
    rows.append(bench.row("random real", random, chosen))
    rows.append(bench.row("optimised real", _optimised(bench, chosen[0]), chosen))
    makers: dict[str, Callable[[], list[Steps]]] = {
        "k-means": lambda: [k_means(rest, network, **layout, seed=n) for n in range(counts.sets)],
        "average real": lambda: [average_real(rest, network, **layout)],
    }
    for name, make in makers.items():
        sets = make()
        rows.append(bench.row(name, sets, bench.choose(name, sets)))
    return found, rows


def _optimised(bench: _Bench, rate: Rate) -> list[Steps]:
    """Of many random sets those that attack best, on training data."""
    order = torch.randperm(len(bench.rest), generator=stream(0, "optimised poisoning"))
    some = bench.rest.part(order[:OPTIMISED_EXAMPLES], bench.rest.split)
    judges = bench.choosing.others(some, bench.choosing.networks)

    def real(number: int) -> Steps:
        return random_real(bench.rest, bench.network, **bench.layout(), seed=number)

    def score(number: int) -> float:
        found = attack(bench.steps(real(number), rate), judges).after
        bench.progress(Progress("choosing: optimised real", number + 1, bench.counts.drawn))
        return found.modified.mean - (found.success.mean < TURNED)

    best = optimised_real(score, drawn=bench.counts.drawn, kept=bench.counts.kept)
    return [real(number) for number in best]


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
