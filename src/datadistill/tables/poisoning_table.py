"""The paper's comparison for poisoning: real images with modified labels as the attack."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter

from ..baselines import average_real, k_means, optimised_real, random_real
from ..core.distilled import Steps
from ..data import LabelledData
from ..data.fingerprint import data_hash
from ..errors import ConfigError
from ..evaluation.poisoning import Attack, Attacked, Victims, attack
from ..evaluation.result import ClassScore
from ..evaluation.search import LEARNING_RATES, Choice, Rate, scheduled
from ..models.description import weights_hash
from ..progress import Progress, ProgressCallback, silent
from ..version import __version__
from .result_cache import Parts

TURNED = 0.1
"""Share of the attacked class that a learning rate must turn to be considered."""
HELD_OUT = 0.1  # of the training data, to choose on
FIGURES = TypeAdapter(Attacked)


@dataclass(frozen=True)
class PoisoningCounts:
    """How much is computed; the defaults are the paper's.

    Attributes:
        sets: Sets of random real images, and runs of k-means.
        drawn: Sets of which the optimised ones are chosen.
        kept: How many of these are kept.
        choosing: Networks on which learning rates and sets are chosen.
        examples: Real examples on which learning rates and sets are chosen.
    """

    sets: int = 10
    drawn: int = 50
    kept: int = 10
    choosing: int = 20
    examples: int = 1024


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
    images: Callable[[str, int], Steps]
    rest: LabelledData
    choosing: Victims
    victims: Victims
    counts: PoisoningCounts
    parts: Parts
    progress: ProgressCallback

    def attack(self, name: str, number: int, rate: Rate, victims: Victims) -> Attacked:
        """What a set of real images does; what is known already is not computed again."""
        learned = self.distilled.learning_rates
        key: dict[str, object] = {
            "poisoning": name,
            "set": number,
            "rates": learned.tolist() if rate == "learned" else rate,
            "networks": victims.networks,
            "seed": victims.seed,
            "on": [victims.data.split, len(victims.data)],
        }

        def compute() -> Attacked:
            steps = scheduled(self.images(name, number), Choice(rate, len(learned)), learned)
            return attack(steps, victims).after

        return self.parts.get(key, compute, FIGURES)

    def choose(self, name: str, sets: Sequence[int]) -> tuple[Rate, bool]:
        """The rate of the highest accuracy on modified labels among those that turn enough."""
        rates: tuple[Rate, ...] = ("learned", *LEARNING_RATES)
        turned: dict[Rate, float] = {}
        modified: dict[Rate, float] = {}
        for done, rate in enumerate(rates):
            found = [self.attack(name, number, rate, self.choosing) for number in sets]
            turned[rate] = sum(one.success.mean for one in found) / len(found)
            modified[rate] = sum(one.modified.mean for one in found) / len(found)
            self.progress(Progress(f"choosing: {name}", done + 1, len(rates)))
        enough: list[Rate] = [rate for rate in rates if turned[rate] >= TURNED]
        if not enough:
            return max(rates, key=lambda rate: turned[rate]), False
        return max(enough, key=lambda rate: modified[rate]), True

    def row(self, name: str, sets: Sequence[int], chosen: tuple[Rate, bool]) -> PoisoningRow:
        """The attack by some sets of images, at the learning rate that was chosen."""
        rate, turns = chosen
        found: list[Attacked] = []
        for number in sets:
            found.append(self.attack(name, number, rate, self.victims))
            self.progress(Progress(f"attacking: {name}", len(found), len(sets)))
        return PoisoningRow(name, _joined(found), rate, turns, len(sets))

    def optimised(self, rate: Rate) -> list[int]:
        """Of many random sets those that attack best, on training data."""
        some = self.rest.sample(self.counts.examples, "optimised poisoning")
        judges = self.choosing.others(some, self.choosing.networks)

        def score(number: int) -> float:
            found = self.attack("random real", number, rate, judges)
            self.progress(Progress("choosing: optimised real", number + 1, self.counts.drawn))
            return found.modified.mean - (found.success.mean < TURNED)

        return optimised_real(score, drawn=self.counts.drawn, kept=self.counts.kept)


def poisoning_table(
    distilled: Steps,
    train: LabelledData,
    victims: Victims,
    *,
    counts: PoisoningCounts | None = None,
    results: Path | None = None,
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
        results: A ``results.json`` in which every finished part is kept at once, so that a call
            that was interrupted can be continued; other content of the file stays.
        progress: Called along the way.

    Returns:
        The attack by distilled data, and one row for every kind of images, distilled first.
    """
    counts = counts or PoisoningCounts()
    rest, held_out = train.hold_out(HELD_OUT, seed=0)
    some = held_out.sample(counts.examples, "choosing poisoning")
    choosing = victims.others(some, min(victims.networks, counts.choosing))
    parts = Parts.read(results, _context(distilled, train, victims))
    images = _images(distilled, rest, victims)
    bench = _Bench(distilled, images, rest, choosing, victims, counts, parts, progress)
    found = attack(distilled, victims)
    rows = [PoisoningRow("distilled", found.after, None)]
    sets = range(counts.sets)
    chosen = bench.choose("random real", sets)
    rows.append(bench.row("random real", sets, chosen))
    best = bench.row("random real", bench.optimised(chosen[0]), chosen)
    rows.append(replace(best, name="optimised real"))
    for name, numbers in (("k-means", sets), ("average real", range(1))):
        rows.append(bench.row(name, numbers, bench.choose(name, numbers)))
    return found, rows


def _images(distilled: Steps, data: LabelledData, victims: Victims) -> Callable[[str, int], Steps]:
    """Makes sets of real images like the distilled ones, the attacked labelled as the target."""
    network, objective = victims.network, victims.objective
    classes = objective.classes(network.outputs)
    steps, images = distilled.inputs.shape[:2]
    if images % classes:
        raise ConfigError(
            f"A step of these distilled data has {images} images for {classes} classes.",
            "Evaluate them without baselines.",
        )
    layout = {"classes": classes, "steps": steps, "images_per_class": images // classes}

    @functools.cache  # clustering takes long
    def images_of(name: str, number: int) -> Steps:
        match name:
            case "k-means":
                real = k_means(data, network, **layout, seed=number)
            case "average real":
                real = average_real(data, network, **layout)
            case _:
                real = random_real(data, network, **layout, seed=number)
        return replace(real, labels=objective.modified(real.labels))

    return images_of


def _context(distilled: Steps, train: LabelledData, victims: Victims) -> dict[str, object]:
    """All that every figure depends on; those of real images do not depend on the distilled."""
    network = victims.network
    # One network stands for all of them.
    theta0 = victims.sample(range(1))
    return {
        "objective": victims.objective.record,
        "schedule": [*distilled.learning_rates.shape, distilled.inputs.shape[1]],
        "momentum": victims.rule.momentum,
        "network": [network.name, weights_hash({**network.constants, **theta0})],
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
