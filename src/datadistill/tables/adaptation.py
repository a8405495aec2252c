"""Domain adaptation in the baseline table: the source of its networks, and few-shot adaptation."""

import functools
import itertools
from dataclasses import dataclass

import torch

from ..artefact import DistilledData
from ..baselines import RandomReal
from ..baselines.adversarial import AdversarialSettings, adapt_few_shot
from ..core.initialization import networks_for
from ..core.network import Weights
from ..data import LabelledData
from ..data.fingerprint import data_hash, same_data
from ..data.running_statistics import Statistics
from ..errors import DataError, PoolError
from ..evaluation import test_networks
from ..evaluation.rate_search import Score, best
from ..pools import Pool
from ..progress import Progress
from .context import TableContext
from .rows import TableRow

FEW_SHOT, TARGET = "few-shot adversarial", "target images"
LEARNING_RATES = (1e-4, 3e-4, 1e-3)
CONFUSIONS = (0.05, 0.2)


def check_source(distilled: DistilledData, pool: Pool, source: LabelledData) -> None:
    """Refuses a pool that a fixed network is not from, and data that it was not trained on."""
    if not same_data(pool.origin.data.hash, source):
        raise DataError(
            f"The training data of {source.name} are not those that the networks of {pool.path} "
            "were trained on.",
            "Point --data-dir at the files that the pool was made with, or make the pool again.",
        )
    record = distilled.header.initialization
    if record.kind == "fixed-pretrained":
        network = distilled.network()
        (own,) = _one_by_one(distilled.initial_weights(network, networks_for(0, "source", [0])))
        number = record.seed or 0
        there = number < pool.count("train")
        named = pool.network("train", number) if there else {}
        if not all(name in named and torch.equal(w.cpu(), named[name]) for name, w in own.items()):
            raise PoolError(
                f"The network of these distilled data is not number {record.seed} of {pool.path}.",
                "Name the pool that it was taken from.",
            )


@dataclass(frozen=True)
class FewShot:
    """Few-shot adversarial adaptation of the table's networks, with as many target images.

    Attributes:
        context: What the table is measured with.
        source: Real training data that the networks were trained on.
    """

    context: TableContext
    source: LabelledData

    def row(self) -> TableRow:
        """The accuracy of some networks, each with target images of its own.

        A fixed initialization is one network, with as many sets as other baselines have.
        """
        context, (lr, confusion, updates) = self.context, self._choose()
        fixed, counts = context.distilled.initialization.fixed, context.counts
        count = counts.sets if fixed else min(context.networks.count, counts.few_shot_networks)
        values = list[float]()
        for number in range(count):
            settings = AdversarialSettings(confusion=confusion, lr=lr)
            values += self._cached(number, settings, (updates,), choose=False)
            context.progress(Progress(FEW_SHOT, number + 1, count))
        text = f"lr {lr:g}, γ {confusion:g}, {updates} updates"
        return TableRow(FEW_SHOT, tuple((v,) for v in values) if fixed else (tuple(values),), text)

    def _choose(self) -> tuple[float, float, int]:
        """Learning rate, γ and updates that are best on the choosing data."""
        scores: dict[tuple[float, float, int], list[Score]] = {}
        counts = self.context.counts
        numbers, after = range(counts.few_shot_choosing), counts.few_shot_updates
        tried = [*itertools.product(LEARNING_RATES, CONFUSIONS, numbers)]
        for done, (lr, confusion, number) in enumerate(tried):
            settings = AdversarialSettings(confusion=confusion, lr=lr)
            found = self._cached(number, settings, after, choose=True)
            for updates, value in zip(after, found, strict=True):
                scores.setdefault((lr, confusion, updates), []).append(Score(value))
            self.context.progress(Progress(f"{FEW_SHOT}: choosing", done + 1, len(tried)))
        return best(scores)

    def _cached(
        self, number: int, settings: AdversarialSettings, after: tuple[int, ...], *, choose: bool
    ) -> list[float]:
        """Accuracies after some updates, from the cache if they are there."""
        context = self.context
        key = {
            "what": FEW_SHOT,
            "source": self._source_hash,
            "set": number,
            "settings": vars(settings),
            "updates": after,
            "seed": context.networks.seed,
            **({"statistics": TARGET} if context.networks.network.keeps_statistics else {}),
            **(context.selected if choose else {}),
        }
        compute = functools.partial(self._adapted, number, settings, after, choose=choose)
        return context.figures(key, compute, len(after))

    def _adapted(
        self, number: int, settings: AdversarialSettings, after: tuple[int, ...], *, choose: bool
    ) -> list[float]:
        """Adapts the network of a number with random target images, and tests it."""
        context, network = self.context, self.context.networks.network
        networks = context.networks.others(1) if choose else context.networks
        generators = networks_for(networks.seed, "held-out network", [number])
        (theta0,) = _one_by_one(networks.sample(generators))
        target = context.make(RandomReal(), number)
        adapted = adapt_few_shot(
            network.module(theta0),
            self.source,
            target.inputs.flatten(0, 1),
            target.labels.flatten(),
            settings,
            after=after,
            seed=number,
        )
        data = context.data.choosing if choose else context.data.test
        stacked, objective = network.stack(adapted), context.distilled.objective
        # All that is known of the target.
        statistics = Statistics.of_steps(target.inputs, network, TARGET)
        return list(test_networks(network, stacked, data, objective, statistics).values)

    @functools.cached_property
    def _source_hash(self) -> str:
        return data_hash(self.source)


def _one_by_one(weights: Weights) -> list[Weights]:
    count = len(next(iter(weights.values())))
    return [{name: w[j] for name, w in weights.items()} for j in range(count)]
