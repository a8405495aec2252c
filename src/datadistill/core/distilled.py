"""The tensors of distilled data, and the order in which they are used."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from .random import stream
from .values import different, one_line, same


class Step(NamedTuple):
    """One batch of distilled data and the learning rate of the update made with it."""

    inputs: Tensor
    labels: Tensor
    learning_rate: Tensor

    __repr__ = one_line
    __eq__ = same
    __ne__ = different

    def rate_for(self, w: Tensor) -> Tensor:
        """The learning rate, or one for each network, as a factor of a weight's gradient (J, …)."""
        rate = self.learning_rate.to(w.dtype)
        return rate.reshape(-1, *[1] * (w.ndim - 1)) if rate.ndim else rate


class Position(NamedTuple):
    """Where an update stands in the schedule."""

    epoch: int
    step: int


@dataclass(frozen=True)
class Steps:
    """All steps of distilled data: x̃, its labels and η̃.

    Attributes:
        inputs: (steps, images, …) in normalised space.
        labels: (steps, images) of class indices, or floats: (steps, images, …) of class
            probabilities or regression targets.
        learning_rates: (epochs, steps), one positive rate for every update.
    """

    inputs: Tensor
    labels: Tensor
    learning_rates: Tensor

    __repr__ = one_line
    __eq__ = same

    @property
    def schedule(self) -> list[Position]:
        """The T = steps × epochs updates in order: all steps, epoch after epoch."""
        epochs, steps = self.learning_rates.shape[:2]
        return [Position(e, s) for e in range(epochs) for s in range(steps)]

    def __getitem__(self, position: Position) -> Step:
        return Step(
            self.inputs[position.step],
            self.labels[position.step],
            self.learning_rates[position.epoch, position.step],
        )

    def __iter__(self) -> Iterator[Step]:
        """The steps in the order of the schedule."""
        return (self[position] for position in self.schedule)

    def for_each(self, networks: int) -> "Steps":
        """The same for each of J networks: (steps, J, images, …) and (epochs, steps, J).

        A step of it holds a copy for every network, and so does a gradient.
        """
        return Steps(
            self.inputs.unsqueeze(1).expand(-1, networks, *self.inputs.shape[1:]),
            self.labels.unsqueeze(1).expand(-1, networks, *self.labels.shape[1:]),
            self.learning_rates.unsqueeze(2).expand(-1, -1, networks),
        )

    def of_network(self, j: int) -> "Steps":
        """Those of one of the networks of :meth:`for_each`."""
        return Steps(self.inputs[:, j], self.labels[:, j], self.learning_rates[:, :, j])

    def to(self, device: torch.device, dtype: torch.dtype) -> "Steps":
        """Moves to a device; inputs, rates and float labels take the dtype."""
        labels = self.labels.to(device)
        return Steps(
            self.inputs.to(device, dtype),
            labels.to(dtype) if labels.is_floating_point() else labels,
            self.learning_rates.to(device, dtype),
        )


def zeros_like(steps: Steps) -> Steps:
    """Steps of the same shapes, all 0: where gradients are summed up."""
    tensors = steps.inputs, steps.labels, steps.learning_rates
    return Steps(*(torch.zeros_like(tensor) for tensor in tensors))


def positive(raw: Tensor) -> Tensor:
    """η̃ = softplus(raw): learning rates stay positive while ``raw`` is learned freely."""
    return F.softplus(raw)


def raw_of(rates: Tensor) -> Tensor:
    """The inverse of :func:`positive`: log(exp(rate) − 1), stable for tiny and large rates."""
    return rates + torch.log(-torch.expm1(-rates))


def noise(seed: int, shape: tuple[int, ...]) -> Tensor:
    """The start of distilled inputs: N(0, 1), in float32 so that every dtype starts alike."""
    return torch.randn(shape, generator=stream(seed, "distilled inputs"))


def class_labels(steps: int, classes: int, images_per_class: int) -> Tensor:
    """Labels of every step: each class ``images_per_class`` times; shape (steps, images)."""
    return torch.arange(classes).repeat(images_per_class).expand(steps, -1).contiguous()
