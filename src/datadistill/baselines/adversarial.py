"""Few-shot adversarial domain adaptation (Motiian et al., NIPS 2017).

A network that was trained on a source is an encoder g and a classifier h. A discriminator D learns
to tell four kinds of pairs of features apart; then the network learns to classify source and target
while D takes pairs across the domains for pairs within the source. Both are updated in turn.
"""

import copy
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from ..core.distilled import Step
from ..core.gradients import gradient
from ..core.network import Network, Weights
from ..core.random import stream
from ..core.update import training
from ..data import LabelledData
from ..engine.in_place import InPlaceAdam
from ..engine.stacked import Stacked, agree, stacked
from ..errors import ModelError
from ..models.weights import last_layer
from .pairs import CONFUSED, Kind, Members, confusion_loss, discriminator_loss, draw_pairs

HIDDEN = 64

Gradients = Callable[[Weights, Step], Weights]
"""(θ, step) → the gradient of a loss."""


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


class FewShotAdversarial:
    """The adaptation of one network, in turns of discriminator and network.

    Both are trained by the one loop over updates. A step of it holds the images of a turn.

    Args:
        module: The network, trained on the source; it is not changed.
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
        self.module = copy.deepcopy(module).requires_grad_(True)
        self.settings, self.seed = settings, seed
        self._source, self._images, self._turns = source, images, itertools.count()
        classes = source.classes
        self._members = Members(source.labels, classes), Members(labels.cpu(), classes)
        self._features, self._head = images, self.module.get_submodule(last_layer(module))
        self._head.register_forward_pre_hook(self._keep)
        self._encoder = _encoder(self.module, images[:2])
        self._network = self._learner(self.module, self.network_gradient, CONFUSED, settings.lr)
        self._theta = next(self._network)
        width = self.encode(self._theta, images[:2])[0].shape[1]
        self._discriminator = _discriminator(2 * width, seed).to(images)
        self._judge = self._learner(
            self._discriminator, self.discriminator_gradient, Kind, settings.discriminator_lr
        )
        self._phi = next(self._judge)
        for _ in range(settings.warm_up):
            self.teach_discriminator()

    def encode(self, weights: Weights, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Features g(x), which the last layer takes, and logits h(g(x))."""
        if self._encoder:
            features = self._encoder({name: w[None] for name, w in weights.items()}, inputs)[0]
            names = {p: name for name, p in self.module.named_parameters()}
            own = {name: weights[names[p]] for name, p in self._head.named_parameters()}
            return features, functional_call(self._head, own, (features,))
        logits = functional_call(self.module, weights, (inputs,))
        return self._features, logits

    def judge(self, pairs: Tensor, weights: Weights | None = None) -> Tensor:
        """D's logits of the four kinds for pairs of features; as it stands by default."""
        return functional_call(self._discriminator, weights or self._phi, (pairs,))

    def teach_discriminator(self) -> None:
        """One update of D on pairs of all kinds, the network fixed."""
        self._phi = next(self._judge)

    def teach_network(self) -> None:
        """One update of g and h: classify, and confuse D."""
        self._theta = next(self._network)

    def discriminator_gradient(self, weights: Weights, step: Step) -> Weights:
        """The gradient of how badly D tells the kinds of pairs apart."""
        with torch.no_grad():
            features, _ = self.encode(self._theta, step.inputs)
        pairs = self._pairs(features, tuple(Kind))
        return gradient(lambda phi: discriminator_loss(self._judged(phi, pairs)), weights)

    def network_gradient(self, weights: Weights, step: Step) -> Weights:
        """The gradient of classifying the images badly, and of not confusing D."""

        def loss(theta: Weights) -> Tensor:
            features, logits = self.encode(theta, step.inputs)
            judged = self._judged(self._phi, self._pairs(features, tuple(CONFUSED)))
            losses = F.cross_entropy(logits, step.labels, reduction="none")
            real = len(CONFUSED) * self.settings.pairs
            classification = losses[:real].mean() + losses[real:].mean()
            return classification + self.settings.confusion * confusion_loss(judged)

        return gradient(loss, weights)

    def weights(self) -> Weights:
        """A copy of the network's weights."""
        return {name: w.clone() for name, w in self._theta.items()}

    def _learner(
        self, module: nn.Module, side: Gradients, kinds: Iterable[Kind], rate: float
    ) -> Iterator[Weights]:
        """The weights of one of the two before its first turn and after each, by Adam."""
        theta0 = {name: p.detach() for name, p in module.named_parameters()}
        return training(InPlaceAdam(), _Side(side), theta0, self._steps(tuple(kinds), rate))

    def _steps(self, kinds: Sequence[Kind], rate: float) -> Iterator[Step]:
        """The images of every turn, drawn when it comes.

        First images of the pairs of each kind, then second ones within the source, then across.
        """
        device, dtype, (source, target) = self._images.device, self._images.dtype, self._members
        eta = torch.tensor(rate, dtype=torch.float64)
        for turn in self._turns:
            random = stream(self.seed, "adversarial pairs", turn)
            drawn = {k: draw_pairs(k, source, target, self.settings.pairs, random) for k in kinds}
            within = [second for kind, (_, second) in drawn.items() if not kind.across]
            across = torch.cat([second for kind, (_, second) in drawn.items() if kind.across])
            chosen = torch.cat([first for first, _ in drawn.values()] + within)
            real, _ = self._source.batch(chosen, device, dtype, random)
            labels = torch.cat([source.labels[chosen], target.labels[across]]).to(device)
            yield Step(torch.cat([real, self._images[across.to(device)]]), labels, eta)

    def _pairs(self, features: Tensor, kinds: Sequence[Kind]) -> dict[Kind, Tensor]:
        """φ(g(x₁), g(x₂)) of pairs of each kind, from the features of a turn's images."""
        parts = list(features.split(self.settings.pairs))
        firsts, seconds = parts[: len(kinds)], parts[len(kinds) :]
        order = sorted(range(len(kinds)), key=lambda k: kinds[k].across)  # within before across
        return {
            kinds[k]: torch.cat([firsts[k], second], 1)
            for k, second in zip(order, seconds, strict=True)
        }

    def _judged(self, phi: Weights, pairs: dict[Kind, Tensor]) -> dict[Kind, Tensor]:
        return {kind: self.judge(pair, phi) for kind, pair in pairs.items()}

    def _keep(self, _: nn.Module, arguments: tuple[Tensor]) -> None:
        self._features = arguments[0]


@dataclass(frozen=True)
class _Side:
    """What training needs of an engine, for one of the two that learn."""

    gradient: Gradients


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
        module: The network, trained on the source; it is not changed.
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
