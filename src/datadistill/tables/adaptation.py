"""Domain adaptation in the baseline table: where networks come from, and the few-shot rival."""

import functools
import itertools
from dataclasses import dataclass

import torch

from ..artefact import DistilledData
from ..baselines.adversarial import AdversarialSettings, adapt_few_shot
from ..core.initialization import networks_for
from ..core.network import Network, Weights
from ..data import LabelledData
from ..data.fingerprint import data_hash
from ..errors import DataError, PoolError
from ..evaluation import test_networks
from ..evaluation.held_out import Sample
from ..evaluation.search import Score, best
from ..pools import HeldOutInit, Pool, PoolInit
from ..progress import Progress
from .context import CHOOSING_SEED, FIGURES, Bench, Values

LEARNING_RATES = (1e-4, 3e-4, 1e-3)
CONFUSIONS = (0.05, 0.2)


def others_of(distilled: DistilledData, network: Network) -> Sample | None:
    """Draws training networks of a pool to choose with: its held-out ones come in order."""
    initialization = distilled.initialization
    if not isinstance(initialization, HeldOutInit):
        return None
    return functools.partial(PoolInit(initialization.found).sample, network)


def check_source(distilled: DistilledData, pool: Pool, source: LabelledData) -> None:
    """Refuses a pool that the one network is not from, or data that it was not trained on."""
    if data_hash(source) != pool.origin.data.hash:
        raise DataError(
            f"The training data of {source.name} are not those that the networks of {pool.path} "
            "were trained on.",
            "Point --data-dir at the files that the pool was made with, or make the pool again.",
        )
    record = distilled.header.initialization
    if record.kind == "fixed-pretrained":
        network = distilled.network()
        (own,) = _one_by_one(distilled.initial_weights(network, networks_for(0, "source", [0])))
        there = record.seed < pool.count("train")
        named = pool.network("train", record.seed) if there else {}
        if not all(name in named and torch.equal(w.cpu(), named[name]) for name, w in own.items()):
            raise PoolError(
                f"The network of these distilled data is not number {record.seed} of {pool.path}.",
                "Name the pool that it was taken from.",
            )


@dataclass(frozen=True)
class FewShot:
    """Few-shot adversarial adaptation of the table's networks, with as many target images.

    Attributes:
        bench: What the table is measured with.
        source: Real training data that the networks were trained on.
    """

    bench: Bench
    source: LabelledData

    def figures(self) -> tuple[Values, str]:
        """The accuracy of some networks, each with target images of its own; what was chosen.

        A fixed initialization is one network, with as many sets as other baselines have.
        """
        bench, (lr, confusion, updates) = self.bench, self._choose()
        fixed, counts = bench.distilled.initialization.fixed, bench.counts
        count = counts.sets if fixed else min(bench.networks, counts.few_shot_networks)
        values = list[float]()
        for number in range(count):
            settings = AdversarialSettings(confusion=confusion, lr=lr)
            values += self._kept(number, settings, (updates,), choose=False)
            bench.progress(Progress("few-shot adversarial", number + 1, count))
        text = f"lr {lr:g}, γ {confusion:g}, {updates} updates"
        return tuple((v,) for v in values) if fixed else (tuple(values),), text

    def _choose(self) -> tuple[float, float, int]:
        """Learning rate, γ and updates that are best on the choosing data."""
        scores: dict[tuple[float, float, int], list[Score]] = {}
        counts = self.bench.counts
        numbers, after = range(counts.few_shot_choosing), counts.few_shot_updates
        tried = [*itertools.product(LEARNING_RATES, CONFUSIONS, numbers)]
        for done, (lr, confusion, number) in enumerate(tried):
            settings = AdversarialSettings(confusion=confusion, lr=lr)
            found = self._kept(number, settings, after, choose=True)
            for updates, value in zip(after, found, strict=True):
                scores.setdefault((lr, confusion, updates), []).append(Score(value))
            self.bench.progress(Progress("few-shot adversarial: choosing", done + 1, len(tried)))
        return best(scores)

    def _kept(
        self, number: int, settings: AdversarialSettings, after: tuple[int, ...], *, choose: bool
    ) -> list[float]:
        """Accuracies after some updates; what is known already is not computed again."""
        bench = self.bench
        key = {
            "what": "few-shot adversarial",
            "source": self._source_hash,
            "set": number,
            "settings": vars(settings),
            "updates": after,
            "seed": bench.seed,
            **({"select": bench.select, "examples": len(bench.choosing)} if choose else {}),
            **(bench.drawn_from if choose else {}),
        }
        compute = functools.partial(self._adapted, number, settings, after, choose=choose)
        return bench.parts.get(key, compute, FIGURES, len(after))

    def _adapted(
        self, number: int, settings: AdversarialSettings, after: tuple[int, ...], *, choose: bool
    ) -> list[float]:
        """Adapts the network of a number with random target images, and tests it."""
        bench, network = self.bench, self.bench.network
        seed = bench.seed + CHOOSING_SEED if choose else bench.seed
        sample = bench.choosing_sample if choose else bench.sample
        (theta0,) = _one_by_one(sample(networks_for(seed, "held-out network", [number])))
        target = bench.images("random real", number)
        adapted = adapt_few_shot(
            network.module(theta0),
            self.source,
            target.inputs.flatten(0, 1),
            target.labels.flatten(),
            settings,
            after=after,
            seed=number,
        )
        data = bench.choosing if choose else bench.test
        stacked = network.stack(adapted)
        return list(test_networks(network, stacked, data, bench.distilled.objective).values)

    @functools.cached_property
    def _source_hash(self) -> str:
        return data_hash(self.source)


def _one_by_one(weights: Weights) -> list[Weights]:
    count = len(next(iter(weights.values())))
    return [{name: w[j] for name, w in weights.items()} for j in range(count)]
