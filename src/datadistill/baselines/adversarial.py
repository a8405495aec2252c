"""Few-shot adversarial domain adaptation (Motiian et al., NIPS 2017).

A network that was trained on a source is an encoder g and a classifier h. A discriminator D learns
to tell four kinds of pairs of features apart; then the network learns to classify source and target
while D takes pairs across the domains for pairs within the source. Both are updated in turn.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..core.network import Network, Weights
from ..core.random import stream
from ..data import LabelledData
from ..engine.stacked import Stacked, agree, stacked
from ..errors import ModelError
from ..models.weights import last_layer

HIDDEN = 64


class Kind(IntEnum):
    """What D tells apart: the paper's G₁ to G₄. The first image of a pair is of the source."""

    SAME_CLASS = 0
    SAME_CLASS_ACROSS = 1
    OTHER_CLASS = 2
    OTHER_CLASS_ACROSS = 3

    @property
    def across(self) -> bool:
        """Whether the second image is of the target."""
        return self in (Kind.SAME_CLASS_ACROSS, Kind.OTHER_CLASS_ACROSS)

    @property
    def same(self) -> bool:
        """Whether both images are of one class."""
        return self in (Kind.SAME_CLASS, Kind.SAME_CLASS_ACROSS)


CONFUSED = {
    Kind.SAME_CLASS_ACROSS: Kind.SAME_CLASS,
    Kind.OTHER_CLASS_ACROSS: Kind.OTHER_CLASS,
}
"""What the network makes D take pairs across the domains for."""


@dataclass(frozen=True)
class AdversarialSettings:
    """Settings of the adaptation.

    Attributes:
        confusion: γ, the weight of confusing D beside classification.
        lr: Adam's learning rate of the network.
        discriminator_lr: Adam's learning rate of D.
        warm_up: Updates of D before the network's first.
        pairs: Pairs of each kind in an update.
    """

    confusion: float = 0.2
    lr: float = 3e-4
    discriminator_lr: float = 1e-3
    warm_up: int = 100
    pairs: int = 32


class Members:
    """Examples by class, to draw from."""

    def __init__(self, labels: Tensor, classes: int) -> None:
        self.labels, self.classes = labels, classes
        self._order = labels.argsort(stable=True)
        self._counts = labels.bincount(minlength=classes)
        self._starts = self._counts.cumsum(0) - self._counts

    def of(self, wanted: Tensor, random: torch.Generator) -> Tensor:
        """One random example of each wanted class."""
        share = torch.rand(len(wanted), generator=random, dtype=torch.float64)
        return self._order[self._starts[wanted] + (share * self._counts[wanted]).long()]


def draw_pairs(
    kind: Kind, source: Members, target: Members, count: int, random: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Draws pairs of a kind, all classes with the same probability.

    Returns:
        The indices of source examples, and those of source or, across, of target examples.
    """
    classes = source.classes
    first = torch.randint(classes, (count,), generator=random)
    shift = torch.randint(1, classes, (count,), generator=random)
    second = first if kind.same else (first + shift) % classes
    return source.of(first, random), (target if kind.across else source).of(second, random)


def discriminator_loss(judged: dict[Kind, Tensor]) -> Tensor:
    """−Σᵢ log Dᵢ(Gᵢ): how badly D tells the kinds apart, from its logits for pairs of each."""
    return torch.stack([_called(logits, kind) for kind, logits in judged.items()]).mean()


def confusion_loss(judged: dict[Kind, Tensor]) -> Tensor:
    """−log D₁(G₂) − log D₃(G₄): small where D takes pairs across for pairs within the source."""
    return torch.stack([_called(judged[k], wanted) for k, wanted in CONFUSED.items()]).sum()


def _called(logits: Tensor, kind: Kind) -> Tensor:
    return F.cross_entropy(logits, torch.full((len(logits),), int(kind), device=logits.device))


class FewShotAdversarial:
    """The adaptation of one network, in turns of discriminator and network.

    Args:
        module: The network, trained on the source; it is changed.
        source: Real training data of the source.
        images: The few target images (images, …), normalised.
        labels: Their classes.
        settings: Settings of the adaptation.
        seed: Seed of the random draws.
    """

    def __init__(
        self,
        module: nn.Module,
        source: LabelledData,
        images: Tensor,
        labels: Tensor,
        settings: AdversarialSettings,
        seed: int = 0,
    ) -> None:
        self.module, self.settings, self.seed = module.requires_grad_(True), settings, seed
        self._source, self._images, self._turn = source, images, 0
        classes = source.classes
        self._members = Members(source.labels, classes), Members(labels.cpu(), classes)
        self._features, self._head = images, module.get_submodule(last_layer(module))
        self._head.register_forward_pre_hook(self._keep)
        self._encoder = _encoder(module, images[:2])
        width = self.encode(images[:1])[0].shape[1]
        self.discriminator = _discriminator(2 * width, seed).to(images)
        rates = settings.lr, settings.discriminator_lr
        self._adams = [
            torch.optim.Adam(one.parameters(), lr=rate)
            for one, rate in zip((module, self.discriminator), rates, strict=True)
        ]
        for _ in range(settings.warm_up):
            self.teach_discriminator()

    def encode(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Features g(x), which the last layer takes, and logits h(g(x))."""
        if self._encoder:
            weights = {name: p[None] for name, p in self.module.named_parameters()}
            features = self._encoder(weights, inputs)[0]
            return features, self._head(features)
        logits = self.module(inputs)
        return self._features, logits

    def teach_discriminator(self) -> None:
        """One update of D on pairs of all kinds, the network fixed."""
        with torch.no_grad():
            pairs, _ = self._pairs(tuple(Kind))
        judged = {kind: self.discriminator(pair) for kind, pair in pairs.items()}
        self._update(1, discriminator_loss(judged))

    def teach_network(self) -> None:
        """One update of g and h: classify, and confuse D."""
        pairs, classification = self._pairs(tuple(CONFUSED))
        judged = {kind: self.discriminator(pair) for kind, pair in pairs.items()}
        self._update(0, classification + self.settings.confusion * confusion_loss(judged))

    def weights(self) -> Weights:
        """A copy of the network's weights."""
        return {name: p.detach().clone() for name, p in self.module.named_parameters()}

    def _pairs(self, kinds: Sequence[Kind]) -> tuple[dict[Kind, Tensor], Tensor]:
        """φ(g(x₁), g(x₂)) of pairs of each kind, and the loss of classifying their images."""
        count, random = self.settings.pairs, stream(self.seed, "adversarial pairs", self._turn)
        self._turn += 1
        drawn = [draw_pairs(kind, *self._members, count, random) for kind in kinds]
        source, target = self._members
        # Every image of the turn in one pass: first images, then second ones within, then across.
        within = [second for kind, (_, second) in zip(kinds, drawn, strict=True) if not kind.across]
        across = torch.cat([s for kind, (_, s) in zip(kinds, drawn, strict=True) if kind.across])
        chosen = torch.cat([first for first, _ in drawn] + within)
        device, dtype = self._images.device, self._images.dtype
        real, _ = self._source.batch(chosen, device, dtype, random)
        labels = torch.cat([source.labels[chosen], target.labels[across]]).to(device)
        features, logits = self.encode(torch.cat([real, self._images[across.to(device)]]))
        losses = F.cross_entropy(logits, labels, reduction="none")
        classification = losses[: len(chosen)].mean() + losses[len(chosen) :].mean()
        parts = list(features.split(count))
        firsts, seconds = parts[: len(kinds)], parts[len(kinds) :]
        order = sorted(range(len(kinds)), key=lambda k: kinds[k].across)  # within before across
        pairs = {
            kinds[k]: torch.cat([firsts[k], second], 1)
            for k, second in zip(order, seconds, strict=True)
        }
        return pairs, classification

    def _update(self, which: int, loss: Tensor) -> None:
        for one in self._adams:
            one.zero_grad()
        loss.backward()
        self._adams[which].step()

    def _keep(self, _: nn.Module, arguments: tuple[Tensor]) -> None:
        self._features = arguments[0]


def adapt_few_shot(
    module: nn.Module,
    source: LabelledData,
    images: Tensor,
    labels: Tensor,
    settings: AdversarialSettings | None = None,
    *,
    after: Sequence[int] = (400,),
    seed: int = 0,
) -> list[Weights]:
    """Adapts a network to a target of which few labelled images are known.

    Args:
        module: The network, trained on the source; it is changed.
        source: Real training data of the source.
        images: The target images (images, …), normalised.
        labels: Their classes.
        settings: Settings of the adaptation.
        after: Numbers of updates, rising, after which to return the network's weights.
        seed: Seed of the random draws.
    """
    adaptation = FewShotAdversarial(
        module, source, images, labels, settings or AdversarialSettings(), seed
    )
    found: list[Weights] = []
    with torch.enable_grad():
        for update in range(1, max(after) + 1):
            adaptation.teach_network()
            adaptation.teach_discriminator()
            if update in after:
                found.append(adaptation.weights())
    return found


def _encoder(module: nn.Module, example: Tensor) -> Stacked | None:
    """g, computed layer by layer, which is faster; if all layers are known, and h is the last."""
    encoder, name = copy.deepcopy(module), last_layer(module)
    if not name:
        return None
    above, _, own = name.rpartition(".")
    setattr(encoder.get_submodule(above), own, nn.Flatten())
    try:
        fast = stacked(Network(encoder, example))
    except ModelError:
        return None
    if fast is None:
        return None
    with torch.no_grad():
        weights = {name: p[None] for name, p in module.named_parameters()}
        found, expected = module.get_submodule(name)(fast(weights, example)[0]), module(example)
    return fast if agree(found, expected) else None


def _discriminator(width: int, seed: int) -> nn.Module:
    """D: two features to the logits of the four kinds."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(stream(seed, "discriminator").initial_seed())
        return nn.Sequential(
            *(nn.Linear(width, HIDDEN), nn.ReLU()),
            *(nn.Linear(HIDDEN, HIDDEN), nn.ReLU()),
            nn.Linear(HIDDEN, len(Kind)),
        )
