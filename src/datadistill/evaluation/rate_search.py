"""The learning rate and number of epochs that serve real images best."""

import itertools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeVar

import torch
from torch import Tensor

from ..core.distilled import Steps
from ..progress import Progress, ProgressCallback, silent
from .result import Evaluation

Rate = float | Literal["learned"]
"""One learning rate for all updates, or those that were learned with the distilled data."""

LEARNING_RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
EPOCHS = (1, 3, 5)
"""What the paper tries for its baselines, beside the learned learning rates."""

C = TypeVar("C", bound=Hashable)


class Choice(NamedTuple):
    """How real images are used as training data."""

    rate: Rate
    epochs: int


class Score(NamedTuple):
    """How well networks do with one choice.

    Attributes:
        mean: Their mean metric.
        diverged: How many of them have a loss that is not finite.
    """

    mean: float
    diverged: int = 0

    @classmethod
    def of(cls, result: Evaluation) -> "Score":
        """The score of an evaluation."""
        return cls(result.mean, sum(not math.isfinite(loss) for loss in result.losses))


def with_rate(steps: Steps, rate: float, epochs: int) -> Steps:
    """Returns the same images with one learning rate for all updates."""
    rates = steps.inputs.new_full((epochs, len(steps.inputs)), rate)
    return Steps(steps.inputs, steps.labels, rates)


def scheduled(steps: Steps, choice: Choice, learned: Tensor | None = None) -> Steps:
    """Returns the same images with the learning rates and epochs of a choice.

    Learned learning rates (epochs, steps) are used as they are, each epoch with its own. Beyond
    the epochs that were learned, those of the last go on.
    """
    if choice.rate != "learned":
        return with_rate(steps, choice.rate, choice.epochs)
    if learned is None:
        raise ValueError("there are no learned learning rates")
    rates = [learned[min(epoch, len(learned) - 1)] for epoch in range(choice.epochs)]
    return Steps(steps.inputs, steps.labels, torch.stack(rates).to(steps.inputs))


def search(
    measure: Callable[[int, Rate], Mapping[int, Score]],
    *,
    sets: int,
    rates: Sequence[Rate] = LEARNING_RATES,
    higher_is_better: bool = True,
    progress: ProgressCallback = silent,
) -> Choice:
    """Returns the learning rate and epochs that are best on average over sets of images.

    Args:
        measure: Trains networks on the set of a number with a rate, once, for the most epochs;
            returns their score after each number of epochs. It should measure on held-out
            *training* data: the test set chooses nothing.
        sets: How many sets.
        rates: The learning rates to try.
        higher_is_better: Whether a higher metric is a better one.
        progress: Called after every training.
    """
    scores: dict[Choice, list[Score]] = {}
    for done, (rate, number) in enumerate(itertools.product(rates, range(sets))):
        for epochs, score in measure(number, rate).items():
            scores.setdefault(Choice(rate, epochs), []).append(score)
        progress(Progress("choosing a rate", done + 1, len(rates) * sets))
    return best(scores, higher_is_better=higher_is_better)


def best(scores: Mapping[C, Sequence[Score]], *, higher_is_better: bool = True) -> C:
    """Returns the choice with the best mean score; of equal ones the first.

    A choice with which networks diverge never wins against one with which fewer do.
    """

    def rank(choice: C) -> tuple[int, float]:
        mean = sum(score.mean for score in scores[choice]) / len(scores[choice])
        better = mean if higher_is_better else -mean
        diverged = sum(score.diverged for score in scores[choice])
        return -diverged, -math.inf if math.isnan(better) else better

    return max(scores, key=rank)
