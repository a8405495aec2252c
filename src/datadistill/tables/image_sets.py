"""What all tables do with baselines: draw sets of images, choose how to use them, measure them."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ..baselines import Baseline
from ..baselines.optimised_real import best_sets
from ..core.distilled import Steps
from ..core.values import one_line
from ..errors import ConfigError
from ..models.description import weights_hash
from ..runs.seams import named

Make = Callable[[Baseline, int], Steps]
"""Makes the images of a baseline, by the number of the set."""

C = TypeVar("C")
F = TypeVar("F")

PAPER_ORDER = ("random real", "optimised real", "k-means", "average real")
RESERVED = (
    *("untrained", "no adaptation", "distilled", "few-shot adversarial"),
    *("all real", "full target", "full fine-tuning"),
)
"""Rows of a table that are not images of a baseline."""

KEPT = 16
"""Sets of a baseline that are kept in memory: as many as a row reports, and some."""

HELD_OUT = 0.1
"""Share of the training data that is held out to choose on; no baseline sees it."""


@dataclass(frozen=True)
class Counts:
    """How many sets and networks figures are averaged over, and how many choose.

    The defaults are the paper's where it gives a number.

    Attributes:
        sets: Sets of random real images, and runs of k-means.
        drawn: Sets of which the optimised ones are picked.
        kept: How many are picked.
        picking_networks: Networks that pick them.
        choosing_sets: Sets on which learning rate and epochs are chosen.
        choosing_networks: Networks that choose them.
        examples: Real examples to choose and pick on.
        full_networks: Networks that are trained on all real data.
        full_epochs: Passes over them; by default enough for 300,000 examples, from 5 to 30.
        few_shot_networks: Networks that are adapted by few-shot adversarial adaptation.
        few_shot_choosing: Networks that choose its settings.
        few_shot_updates: Numbers of its updates to choose from.
    """

    sets: int = 10
    drawn: int = 50
    kept: int = 10
    picking_networks: int = 20
    choosing_sets: int = 4
    choosing_networks: int = 20
    examples: int = 1024
    full_networks: int = 3
    full_epochs: int | None = None
    few_shot_networks: int = 20
    few_shot_choosing: int = 4
    few_shot_updates: tuple[int, ...] = (100, 200, 400)

    __repr__ = one_line


class ImageSets:
    """The sets of images of one baseline, by their numbers.

    Args:
        baseline: The baseline.
        make: Makes its images.
    """

    def __init__(self, baseline: Baseline, make: Make) -> None:
        self.baseline, self._make = baseline, make
        self._kept: dict[int, Steps] = {}
        self._hashes: dict[int, str] = {}

    @property
    def name(self) -> str:
        """The name of the row."""
        return self.baseline.title

    def __getitem__(self, number: int) -> Steps:
        if number in self._kept:
            return self._kept[number]
        made = self._make(self.baseline, number)
        # Selecting examples is fast, unlike e.g. clustering.
        if not self.baseline.selects_examples and len(self._kept) < KEPT:
            self._kept[number] = made
        return made

    def key(self, number: int) -> dict[str, Any]:
        """The cache key of a set, to which the name of the baseline is added.

        For a user's own baseline it includes a hash of the images, as its code may change.
        """
        record = self.baseline.record()
        settings = {"record": record} if record != {"name": self.name} else {}
        if self.baseline.is_built_in():
            return {"set": number, **settings}
        if number not in self._hashes:
            tensors = {"inputs": self[number].inputs, "labels": self[number].labels}
            self._hashes[number] = weights_hash(tensors)
        return {"set": number, **settings, "images": self._hashes[number]}


@dataclass(frozen=True)
class ImageBaselines(ABC, Generic[C, F]):
    """How baselines are measured, in any table.

    How the images are used (the learning rate and such) is chosen on data that are not reported.
    If a baseline has candidates, the best sets are picked among them; if not, the first ones are
    taken. ``C`` is what is chosen, ``F`` the figure of one set.

    Attributes:
        counts: How many sets and networks.
    """

    counts: Counts

    @abstractmethod
    def sets_of(self, baseline: Baseline) -> ImageSets:
        """The sets of images of a baseline."""

    @abstractmethod
    def choose(self, sets: ImageSets, row: str) -> C:
        """Chooses how the images are used, for a row of a name."""

    @abstractmethod
    def score(self, sets: ImageSets, number: int, choice: C, row: str) -> float:
        """The score of a set on training data, by which the best sets are picked."""

    @abstractmethod
    def figures(self, sets: ImageSets, numbers: Sequence[int], choice: C, row: str) -> list[F]:
        """The figures of some sets."""

    def measure(self, sets: ImageSets) -> tuple[C, list[F]]:
        """Returns what was chosen for a baseline, and the figures of its sets."""
        counts, row, candidates = self.counts, sets.name, sets.baseline.candidates
        if candidates is None:
            choice = self.choose(sets, row)
            return choice, self.figures(sets, self.numbers(sets), choice, row)
        sets = self.sets_of(candidates)
        choice = self.choose(sets, row)
        score = functools.partial(self.score, sets, choice=choice, row=row)
        picked = best_sets(score, drawn=counts.drawn, kept=counts.kept)
        return choice, self.figures(sets, picked, choice, row)

    def numbers(self, sets: ImageSets) -> range:
        """The numbers of the sets that are reported if none are picked."""
        return range(1 if sets.baseline.deterministic else self.counts.sets)


def baselines_of_table(
    own: Sequence[Baseline | str] = (), *, without: Sequence[str] = ()
) -> list[Baseline]:
    """All baselines of this package in the paper's order, then the user's own.

    Args:
        own: The user's own: objects, or ``file.py:Class``, perhaps with values.
        without: Names of built-in baselines that the table does not have.
    """
    names = [*PAPER_ORDER, *sorted({*Baseline.names()} - {*PAPER_ORDER})]
    found = {name: Baseline.implementation(name)() for name in names if name not in without}
    for given in own:
        baseline = named(Baseline, given) if isinstance(given, str) else given
        title = baseline.title
        taken = title in {*found, *RESERVED} or title.startswith("K-NN ")
        if taken and not baseline.is_built_in():
            raise ConfigError(
                f"The table has another row called {title!r}.",
                f"Change the attribute title of {type(baseline).__name__}.",
            )
        baseline.check_recordable()
        found[title] = baseline
    return list(found.values())
