"""The rows of the baseline table that train networks on images: distilled ones, or baselines."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field, TypeAdapter

from ..baselines import Baseline, RandomReal
from ..core.distilled import Steps
from ..evaluation.rate_search import EPOCHS, LEARNING_RATES, Choice, Rate, Score, search
from ..models.description import weights_hash
from ..progress import Progress
from .context import TableContext
from .image_sets import ImageBaselines, ImageSets
from .result_cache import Unit
from .rows import TableRow

SCORES = TypeAdapter(list[tuple[Unit, Annotated[int, Field(ge=0)]]])
RATES: tuple[Rate, ...] = ("learned", *LEARNING_RATES)


def distilled_figures(
    context: TableContext, artefact: Steps
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The accuracies of networks before and after training on the distilled data.

    Args:
        context: What they are measured with, where the distilled data may be features.
        artefact: The distilled data as the artefact has them, by which the cache knows them: the
            last bits of features depend on the processor.
    """
    networks, steps = context.networks, context.distilled.steps
    count = networks.count

    def compute() -> list[float]:
        shown = context.shown("distilled", 0, 1, count)
        after = (0, len(steps.schedule))
        untrained, trained = networks.train_and_test(steps, context.data.test, after, shown)
        return [*untrained.values, *trained.values]

    tensors = {
        "inputs": artefact.inputs,
        "labels": artefact.labels,
        "rates": artefact.learning_rates,
    }
    key = {"what": "distilled", "data": weights_hash(tensors), "networks": count}
    if steps.inner:
        key["inner"] = str(steps.inner)
    both = context.figures({**key, "seed": networks.seed}, compute, 2 * count)
    return tuple(both[:count]), tuple(both[count:])


@dataclass(frozen=True)
class TrainedImages(ImageBaselines[Choice, tuple[float, ...]]):
    """Networks trained on the images of baselines, with the best learning rate and epochs.

    Attributes:
        context: What the table is measured with.
    """

    context: TableContext

    def sets_of(self, baseline: Baseline) -> ImageSets:
        """The sets of images of a baseline."""
        return ImageSets(baseline, self.context.make)

    def row(self, sets: ImageSets) -> TableRow:
        """The row of a baseline."""
        choice, figures = self.measure(sets)
        return TableRow(sets.name, tuple(figures), _text(choice))

    def choose(self, sets: ImageSets, row: str) -> Choice:
        """The learning rate and epochs that are best on the choosing data."""
        counts, fixed = self.counts, self.context.distilled.initialization.fixed
        few = counts.sets if fixed else counts.choosing_sets

        def shown(done: Progress) -> None:
            self.context.progress(replace(done, stage=f"{row}: choosing"))

        measure = functools.partial(self._trial, sets)
        few = 1 if sets.baseline.deterministic else few
        return search(measure, sets=few, rates=RATES, progress=shown)

    def score(self, sets: ImageSets, number: int, choice: Choice, row: str) -> float:
        """The accuracy of a set on held-out training data."""
        context, counts = self.context, self.counts
        networks = context.networks.others(counts.picking_networks)

        def compute() -> list[float]:
            steps = networks.scheduled(sets[number], choice)
            return [networks.train_and_test(steps, context.data.picking)[0].mean]

        # In results.json, what is picked is random real images unless it says otherwise.
        candidate = {} if sets.name == RandomReal.name else {"baseline": sets.name}
        key = {
            "what": "pick",
            **candidate,
            **sets.key(number),
            "choice": list(choice),
            **self._learned(choice.rate),
            "networks": networks.count,
            "examples": len(context.data.picking),
            "seed": networks.seed,
            **context.drawn_from,
        }
        (found,) = context.figures(key, compute, 1)
        context.progress(Progress(f"{row}: picking", number + 1, counts.drawn))
        return found

    def figures(
        self, sets: ImageSets, numbers: Sequence[int], choice: Choice, row: str
    ) -> list[tuple[float, ...]]:
        """The accuracy on the test data of every network, for some sets."""
        context, networks = self.context, self.context.networks

        def compute(done: int, number: int) -> list[float]:
            steps = networks.scheduled(sets[number], choice)
            shown = context.shown(row, done, len(numbers), networks.count)
            (result,) = networks.train_and_test(steps, context.data.test, progress=shown)
            return list(result.values)

        values: list[tuple[float, ...]] = []
        for done, number in enumerate(numbers):
            key = {
                "what": "figure",
                "baseline": sets.name,
                **sets.key(number),
                "choice": list(choice),
                **self._learned(choice.rate),
                "networks": networks.count,
                "seed": networks.seed,
            }
            make = functools.partial(compute, done, number)
            values.append(tuple(context.figures(key, make, networks.count)))
            total = len(numbers) * networks.count
            context.progress(Progress(row, (done + 1) * networks.count, total))
        return values

    def _trial(self, sets: ImageSets, number: int, rate: Rate) -> dict[int, Score]:
        """The score after each number of epochs on a set, at a rate."""
        context = self.context
        networks = context.networks.others(self.counts.choosing_networks)

        def compute() -> list[tuple[float, int]]:
            scores = networks.scores(sets[number], rate, context.data.choosing)
            return [(score.mean, score.diverged) for score in scores.values()]

        key = {
            "what": "trial",
            "baseline": sets.name,
            **sets.key(number),
            "rate": rate,
            **self._learned(rate),
            "epochs": EPOCHS,
            "networks": networks.count,
            "seed": networks.seed,
            **context.selected,
        }
        scores = context.cache.get(key, compute, SCORES, len(EPOCHS))
        return {e: Score(*score) for e, score in zip(EPOCHS, scores, strict=True)}

    def _learned(self, rate: Rate) -> dict[str, object]:
        """The learned learning rates, if a figure depends on them."""
        rates = self.context.distilled.learning_rates
        return {"learned": rates.tolist()} if rate == "learned" else {}


def _text(choice: Choice) -> str:
    rate = choice.rate if choice.rate == "learned" else f"lr {choice.rate:g}"
    return f"{rate}, {choice.epochs} epoch{'s' if choice.epochs > 1 else ''}"
