"""The pairs of images that few-shot adversarial adaptation tells apart, and its losses on them."""

from enum import IntEnum

import torch
import torch.nn.functional as F
from torch import Tensor


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
