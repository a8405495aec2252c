"""The measurements of the baseline table, each kept as soon as it is there."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field, TypeAdapter

from ..artefact import DistilledData
from ..baselines import optimised_real
from ..core.distilled import Steps
from ..core.network import Network
from ..data import LabelledData
from ..evaluation import curve
from ..evaluation.held_out import Sample
from ..evaluation.result import Evaluation
from ..evaluation.search import (
    EPOCHS,
    LEARNING_RATES,
    Choice,
    Rate,
    Score,
    scheduled,
    search,
)
from ..models.description import weights_hash
from ..progress import Progress, ProgressCallback, silent
from .counts import Counts as Counts
from .counts import Select as Select
from .result_cache import Parts, Unit

FIGURES = TypeAdapter(list[Unit])
SCORES = TypeAdapter(list[tuple[Unit, Annotated[int, Field(ge=0)]]])
RATES: tuple[Rate, ...] = ("learned", *LEARNING_RATES)
CHOOSING_SEED = 1  # added to the seed of the reported networks

Images = Callable[[str, int], Steps]
"""The images of a baseline, by its name and the number of the set."""

Values = tuple[tuple[float, ...], ...]
"""The accuracy of every network, for every set of images."""


@dataclass(frozen=True)
class Bench:
    """Everything that the rows of the table are measured with.

    Attributes:
        distilled: The distilled data.
        network: Their network.
        images: The images of a baseline, by its name and the number of the set.
        train: All real training data.
        test: Real test data.
        choosing: What learning rates, epochs, norms and K are chosen on.
        picking: Held-out training data on which optimised real images are picked.
        select: Which data ``choosing`` are.
        networks: Held-out networks for each figure.
        seed: Which; others choose.
        others: Draws the networks that choose, where the next seed does not give others.
        counts: How many sets and networks.
        memory: Bound of bytes for networks that are trained side by side.
        parts: Where finished parts are kept.
        progress: Called often.
    """

    distilled: DistilledData
    network: Network
    images: Images
    train: LabelledData
    test: LabelledData
    choosing: LabelledData
    picking: LabelledData
    select: Select
    networks: int
    seed: int
    others: Sample | None
    counts: Counts
    memory: int
    parts: Parts
    progress: ProgressCallback

    def distilled_data(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The figures of the distilled data: networks before, and after training on them."""
        steps = self.distilled.steps
        after = (0, len(steps.schedule))

        def compute() -> list[float]:
            shown = self.shown("distilled", 0, 1, self.networks)
            untrained, trained = self._curve(
                steps, self.test, self.networks, self.seed, after, shown
            )
            return [*untrained.values, *trained.values]

        tensors = {"inputs": steps.inputs, "labels": steps.labels, "rates": steps.learning_rates}
        key = {"what": "distilled", "data": weights_hash(tensors), **self._reported}
        both = self.parts.get(key, compute, FIGURES, 2 * self.networks)
        return tuple(both[: self.networks]), tuple(both[self.networks :])

    def random_real(self) -> tuple[Values, str]:
        """Figures of random real images, and the learning rate and epochs chosen."""
        choice = self._choose("random real")
        return self._figures("random real", range(self.counts.sets), choice), _text(choice)

    def optimised_real(self) -> tuple[Values, str]:
        """The same of the best of many random sets, picked at the rate chosen for those."""
        counts, choice = self.counts, self._choose("random real", stage="optimised real")

        def score(number: int) -> float:
            key = {
                "what": "pick",
                "set": number,
                "choice": list(choice),
                **self._learned(choice.rate),
                "networks": self.few(counts.picking_networks),
                "examples": len(self.picking),
                "seed": self.seed + CHOOSING_SEED,
                **self.drawn_from,
            }
            found = self.parts.get(key, lambda: self._pick(number, choice), FIGURES, 1)[0]
            self.progress(Progress("optimised real: picking", number + 1, counts.drawn))
            return found

        numbers = optimised_real(score, drawn=counts.drawn, kept=counts.kept)
        return self._figures("random real", numbers, choice, "optimised real"), _text(choice)

    def k_means(self) -> tuple[Values, str]:
        """The same of centroids."""
        choice = self._choose("k-means")
        return self._figures("k-means", range(self.counts.sets), choice), _text(choice)

    def average_real(self) -> tuple[Values, str]:
        """The same of class means."""
        choice = self._choose("average real", sets=1)
        return self._figures("average real", [0], choice), _text(choice)

    @property
    def sample(self) -> Sample:
        """Draws the networks that are reported."""
        return functools.partial(self.distilled.initial_weights, self.network)

    @property
    def choosing_sample(self) -> Sample:
        """Draws the networks that choose."""
        return self.others or self.sample

    @property
    def _reported(self) -> dict[str, int]:
        return {"networks": self.networks, "seed": self.seed}

    @property
    def selected(self) -> dict[str, object]:
        """What a choice depends on beside what it is of."""
        return {"select": self.select, "examples": len(self.choosing), **self.drawn_from}

    @property
    def drawn_from(self) -> dict[str, str]:
        """Where the networks that choose come from, if not from the next seed."""
        return {"from": "training networks of the pool"} if self.others else {}

    def _learned(self, rate: Rate) -> dict[str, object]:
        """The learned learning rates, where a figure depends on them."""
        return {"learned": self.distilled.learning_rates.tolist()} if rate == "learned" else {}

    def _choose(self, baseline: str, sets: int | None = None, stage: str | None = None) -> Choice:
        """The learning rate and epochs with which a baseline is best on the choosing data."""
        few = self.counts.sets if self.distilled.initialization.fixed else self.counts.choosing_sets

        def shown(done: Progress) -> None:
            self.progress(replace(done, stage=f"{stage or baseline}: choosing"))

        measure = functools.partial(self._trial, baseline)
        return search(measure, sets=sets or few, rates=RATES, progress=shown)

    def _trial(self, baseline: str, number: int, rate: Rate) -> dict[int, Score]:
        """How good networks are after each number of epochs on a set, with a rate."""
        networks, seed = self.few(self.counts.choosing_networks), self.seed + CHOOSING_SEED

        def compute() -> list[tuple[float, int]]:
            steps = self._scheduled(baseline, number, Choice(rate, max(EPOCHS)))
            after = [epochs * len(steps.inputs) for epochs in EPOCHS]
            results = self._curve(steps, self.choosing, networks, seed, after, choose=True)
            scores = [Score.of(result) for result in results]
            return [(score.mean, score.diverged) for score in scores]

        key = {
            "what": "trial",
            "baseline": baseline,
            "set": number,
            "rate": rate,
            **self._learned(rate),
            "epochs": EPOCHS,
            "networks": networks,
            "seed": seed,
            **self.selected,
        }
        scores = self.parts.get(key, compute, SCORES, len(EPOCHS))
        return {e: Score(*score) for e, score in zip(EPOCHS, scores, strict=True)}

    def _pick(self, number: int, choice: Choice) -> list[float]:
        """The accuracy on training data by which a set of random real images is picked."""
        steps = self._scheduled("random real", number, choice)
        networks = self.few(self.counts.picking_networks)
        seed = self.seed + CHOOSING_SEED
        (result,) = self._curve(steps, self.picking, networks, seed, choose=True)
        return [result.mean]

    def _figures(
        self, baseline: str, numbers: Sequence[int], choice: Choice, name: str | None = None
    ) -> Values:
        """The accuracy on the test data of every network, for some sets of a baseline."""
        stage, total = name or baseline, len(numbers) * self.networks

        def compute(done: int, number: int) -> list[float]:
            steps = self._scheduled(baseline, number, choice)
            shown = self.shown(stage, done, len(numbers), self.networks)
            return list(
                self._curve(steps, self.test, self.networks, self.seed, None, shown)[0].values
            )

        values: list[tuple[float, ...]] = []
        for done, number in enumerate(numbers):
            key = {
                "what": "figure",
                "baseline": baseline,
                "set": number,
                "choice": list(choice),
                **self._learned(choice.rate),
                **self._reported,
            }
            make = functools.partial(compute, done, number)
            values.append(tuple(self.parts.get(key, make, FIGURES, self.networks)))
            self.progress(Progress(stage, (done + 1) * self.networks, total))
        return tuple(values)

    def _scheduled(self, baseline: str, number: int, choice: Choice) -> Steps:
        return scheduled(self.images(baseline, number), choice, self.distilled.learning_rates)

    def _curve(
        self,
        steps: Steps,
        data: LabelledData,
        networks: int,
        seed: int,
        after: Sequence[int] | None = None,
        progress: ProgressCallback = silent,
        choose: bool = False,
    ) -> list[Evaluation]:
        return curve(
            steps,
            self.network,
            self.choosing_sample if choose else self.sample,
            data,
            self.distilled.objective,
            rule=self.distilled.rule,
            networks=networks,
            seed=seed,
            after=after,
            memory=self.memory,
            progress=progress,
        )

    def few(self, networks: int) -> int:
        """How many networks choose or refer; one for a fixed initialization."""
        return 1 if self.distilled.initialization.fixed else networks

    def shown(self, stage: str, done: int, sets: int, units: int) -> ProgressCallback:
        """Turns the progress of one set into that of all sets of a row, in units of each."""

        def show(inner: Progress) -> None:
            finished = done * units + units * inner.done // inner.total
            self.progress(Progress(stage, finished, sets * units, inner.values))

        return show


def _text(choice: Choice) -> str:
    rate = choice.rate if choice.rate == "learned" else f"lr {choice.rate:g}"
    return f"{rate}, {choice.epochs} epoch{'s' if choice.epochs > 1 else ''}"
