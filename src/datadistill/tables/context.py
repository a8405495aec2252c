"""What the baseline table is measured with: networks, data, and a cache of finished parts."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pydantic import TypeAdapter

from ..artefact import DistilledData
from ..baselines import Baseline, Layout
from ..core.device import DeviceLike
from ..core.distilled import Steps
from ..core.network import Network
from ..core.values import one_line
from ..data import LabelledData
from ..data.features import Features
from ..engine.frozen_prefix import FrozenPrefix, split_frozen, steps_through
from ..evaluation import DEFAULT_BYTES, HeldOut, train_and_score
from ..evaluation.held_out import Sample
from ..evaluation.rate_search import EPOCHS, Choice, Rate, Score, scheduled
from ..evaluation.result import Evaluation
from ..progress import Progress, ProgressCallback, silent
from .image_sets import HELD_OUT, Counts, Make
from .result_cache import ResultCache, Unit
from .rows import Select

FIGURES = TypeAdapter(list[Unit])

Values = tuple[tuple[float, ...], ...]
"""The accuracy of every network, for every set of images."""

Figures = Callable[[], list[float]]
"""Computes accuracies."""


@dataclass(frozen=True)
class TableSettings:
    """How the baseline table is measured.

    Attributes:
        select: The data on which learning rates, epochs, norms and K are chosen.
        networks: Held-out networks for each figure; by default 200, or 1 for a fixed
            initialization.
        seed: Seed of the held-out networks; others choose.
        device: Where to compute: auto, cpu, cuda or mps.
        memory: Memory limit, in bytes, of the networks that are trained side by side.
        counts: How many sets and networks.
    """

    select: Select = "train"
    networks: int | None = None
    seed: int = 0
    device: DeviceLike = "auto"
    memory: int = DEFAULT_BYTES
    counts: Counts = field(default_factory=Counts)

    __repr__ = one_line


@dataclass(frozen=True)
class TableFeatures:
    """What enters the layers that learn: features of frozen layers, or images if none are frozen.

    All data pass through the frozen layers once; what is trained sees only the features.

    Attributes:
        distilled: The distilled data.
        network: The layers that learn.
        train: Real training data.
        test: Real test data.
        prefix: The frozen layers, if there are any.
    """

    distilled: DistilledData
    network: Network
    train: LabelledData
    test: LabelledData
    prefix: FrozenPrefix | None = None

    def extract(self, progress: ProgressCallback) -> "TableFeatures":
        """Passes all data through the frozen layers, if there are any and the features fit."""
        network, found = self.network, split_frozen(self.network)
        if found is None or self.train.augmentation:
            return self
        place = network.device, network.dtype
        featured = [Features(data, found.prefix, *place) for data in (self.train, self.test)]
        if not all(features.fit for features in featured):
            return self
        train, test = (features.whole(progress) for features in featured)
        steps = steps_through(found.prefix, self.distilled.steps.to(*place))
        distilled = replace(self.distilled, steps=steps)
        return TableFeatures(distilled, found.head, train, test, found.prefix)

    def images_of(self, images: LabelledData, network: Network) -> Make:
        """Makes the images of baselines, as they enter the layers that learn.

        Args:
            images: Real training images, before any layer.
            network: The whole network.
        """
        shape, prefix = self.distilled.inputs.shape[:2], self.prefix
        data, _ = images.hold_out(HELD_OUT, seed=0)
        layout = Layout.of(network, *shape)
        if prefix is None:
            return lambda baseline, number: baseline.draw(data, layout, number)
        features, _ = self.train.hold_out(HELD_OUT, seed=0)
        features_layout = Layout.of(self.network, *shape)

        def make(baseline: Baseline, number: int) -> Steps:
            if baseline.selects_examples:  # whose features are there already
                return baseline.draw(features, features_layout, number)
            return steps_through(prefix, baseline.draw(data, layout, number))

        return make


@dataclass(frozen=True)
class TableNetworks:
    """Networks that are trained on images and tested.

    Attributes:
        distilled: The distilled data: their objective, update rule and initialization.
        network: The layers that learn.
        count: How many held-out networks.
        seed: Which held-out networks.
        memory: Memory limit in bytes.
        drawn: Draws their initial weights, if the initialization of the distilled data does not.
    """

    distilled: DistilledData
    network: Network
    count: int = 1
    seed: int = 0
    memory: int = DEFAULT_BYTES
    drawn: Sample | None = None

    @property
    def sample(self) -> Sample:
        """Draws initial weights, of one network per generator."""
        return self.drawn or functools.partial(self.distilled.initial_weights, self.network)

    def few(self, networks: int) -> int:
        """How many networks choose or refer; one for a fixed initialization."""
        return 1 if self.distilled.initialization.fixed else networks

    def others(self, count: int) -> "TableNetworks":
        """Other networks to choose with: of the next seed, or training networks of the pool."""
        choosing = self.distilled.initialization.choosing
        drawn = choosing and functools.partial(choosing.sample, self.network)
        return replace(self, count=self.few(count), seed=self.seed + 1, drawn=drawn)

    def train_and_test(
        self,
        steps: Steps,
        data: LabelledData,
        after: Sequence[int] | None = None,
        progress: ProgressCallback = silent,
    ) -> list[Evaluation]:
        """Trains the networks on steps and tests them after some updates, or after the last."""
        return train_and_score(
            steps,
            HeldOut(self.network, self.sample, self.count, self.seed, self.memory),
            data,
            self.distilled.objective,
            rule=self.distilled.rule,
            after=after,
            progress=progress,
        )

    def scores(self, images: Steps, rate: Rate, data: LabelledData) -> dict[int, Score]:
        """The score after each number of epochs that is tried, from one training at a rate."""
        steps = self.scheduled(images, Choice(rate, max(EPOCHS)))
        after = [epochs * len(steps.inputs) for epochs in EPOCHS]
        results = self.train_and_test(steps, data, after)
        return {e: Score.of(result) for e, result in zip(EPOCHS, results, strict=True)}

    def scheduled(self, images: Steps, choice: Choice) -> Steps:
        """The images with the learning rates and epochs of a choice."""
        return scheduled(images, choice, self.distilled.learning_rates)


@dataclass(frozen=True)
class TableData:
    """The real data of the table, as they enter the layers that learn.

    Attributes:
        train: All training data.
        test: Test data.
        choosing: The data on which learning rates, epochs, norms and K are chosen.
        picking: Held-out training data on which the best sets are picked.
        select: Which data ``choosing`` are.
    """

    train: LabelledData
    test: LabelledData
    choosing: LabelledData
    picking: LabelledData
    select: Select

    @classmethod
    def of(
        cls, train: LabelledData, test: LabelledData, select: Select, examples: int
    ) -> "TableData":
        """Takes samples of held-out training data to choose and pick on, or of the test data."""
        _, held_out = train.hold_out(HELD_OUT, seed=0)
        choosing = held_out if select == "train" else test
        samples = choosing.sample(examples, "choosing"), held_out.sample(examples, "picking")
        return cls(train, test, *samples, select)


@dataclass(frozen=True)
class TableContext:
    """What the rows of the table are measured with.

    Attributes:
        networks: The networks that are reported.
        data: The real data.
        make: Makes the images of baselines.
        counts: How many sets and networks.
        cache: The finished parts.
        progress: Called often.
    """

    networks: TableNetworks
    data: TableData
    make: Make
    counts: Counts
    cache: ResultCache
    progress: ProgressCallback

    @property
    def distilled(self) -> DistilledData:
        """The distilled data."""
        return self.networks.distilled

    @property
    def selected(self) -> dict[str, object]:
        """What a choice depends on, beside what it is of."""
        data = {"select": self.data.select, "examples": len(self.data.choosing)}
        return {**data, **self.drawn_from}

    @property
    def drawn_from(self) -> dict[str, str]:
        """Where the networks that choose come from, if not from the next seed."""
        from_pool = self.distilled.initialization.choosing is not None
        return {"from": "training networks of the pool"} if from_pool else {}

    def figures(self, key: Mapping[str, object], compute: Figures, count: int) -> list[float]:
        """Accuracies from the cache, or computed and put there."""
        return self.cache.get(key, compute, FIGURES, count)

    def shown(self, stage: str, done: int, sets: int, units: int) -> ProgressCallback:
        """Turns the progress of one set into that of all sets of a row, in units of each."""

        def show(inner: Progress) -> None:
            finished = done * units + units * inner.done // inner.total
            self.progress(Progress(stage, finished, sets * units, inner.values))

        return show
