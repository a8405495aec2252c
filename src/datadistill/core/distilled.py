"""The tensors of distilled data, and the order in which they are used."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, overload

import torch
import torch.nn.functional as F
from torch import Tensor

from .inner_batches import InnerBatches
from .random import stream
from .values import different, one_line, same

LEARNED = ("inputs", "labels", "learning_rates")
"""The tensors of all steps, in order; those of their gradient too."""
COEFFICIENTS = "coefficients"
"""The tensor that steps also have where the update rule is learned."""


@overload
def per_network(factor: Tensor, w: Tensor) -> Tensor: ...
@overload
def per_network(factor: Tensor | float, w: Tensor) -> Tensor | float: ...
def per_network(factor: Tensor | float, w: Tensor) -> Tensor | float:
    """A number for all networks, or one for each (J,), as a factor of weights (J, …)."""
    if not isinstance(factor, Tensor) or not factor.ndim:
        return factor
    return factor.reshape(-1, *[1] * (w.ndim - 1))


class Step(NamedTuple):
    """One batch of distilled data and the learning rate of the update made with it.

    Attributes:
        inputs: x̃.
        labels: Its labels.
        learning_rate: η̃, or one for each network.
        coefficients: What the update rule learns, if it does: (K,), or (J, K).
    """

    inputs: Tensor
    labels: Tensor
    learning_rate: Tensor
    coefficients: Tensor | None = None

    __repr__ = one_line
    __eq__ = same
    __ne__ = different

    def rate_for(self, w: Tensor) -> Tensor:
        """The learning rate, or one for each network, as a factor of a weight's gradient (J, …)."""
        return per_network(self.learning_rate.to(w.dtype), w)


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
        coefficients: (K,), what the update rule learns for all updates, if it does.
        inner: How an update draws its images; None: it takes all images of its step.
        drawn: What was drawn, (epochs, steps, networks, images), counted through all steps.
    """

    inputs: Tensor
    labels: Tensor
    learning_rates: Tensor
    coefficients: Tensor | None = None
    inner: InnerBatches | None = field(default=None, kw_only=True)
    drawn: Tensor | None = field(default=None, kw_only=True)

    __repr__ = one_line
    __eq__ = same

    @property
    def tensors(self) -> dict[str, Tensor]:
        """What is learned or may be, by name."""
        found = {name: getattr(self, name) for name in (*LEARNED, COEFFICIENTS)}
        return {name: own for name, own in found.items() if own is not None}

    @property
    def images(self) -> int:
        """How many images an update takes."""
        return self.inner.size if self.inner else self.inputs.shape[1]

    @property
    def schedule(self) -> list[Position]:
        """The T = steps × epochs updates in order: all steps, epoch after epoch."""
        epochs, steps = self.learning_rates.shape[:2]
        return [Position(e, s) for e in range(epochs) for s in range(steps)]

    def __getitem__(self, position: Position) -> Step:
        place = self._place(position)
        rate = self.learning_rates[*position]
        return Step(self.inputs[place], self.labels[place], rate, self.coefficients)

    def add(self, position: Position, gradient: Step) -> None:
        """Adds the gradient of one update to those that are summed up here."""
        place = self._place(position)
        self.learning_rates[*position].add_(gradient.learning_rate)
        if self.coefficients is not None and gradient.coefficients is not None:
            self.coefficients.add_(gradient.coefficients)
        if self.inner is None:
            self.inputs[place].add_(gradient.inputs)
            self.labels[place].add_(gradient.labels)
        else:  # no update takes an image twice, so nothing is added to the same place twice
            self.inputs[place] += gradient.inputs
            self.labels[place] += gradient.labels

    def _place(self, position: Position) -> int | tuple[Tensor, ...]:
        """Where the images of an update are: its step, or those that each network has drawn."""
        if self.inner is None:
            return position.step
        if self.drawn is None:
            raise ValueError("each network draws its images first: see Steps.for_networks")
        drawn = self.drawn[*position]
        networks = torch.arange(len(drawn), device=drawn.device)[:, None]
        images = self.inputs.shape[2]
        return drawn // images, networks, drawn % images

    def __iter__(self) -> Iterator[Step]:
        """The steps in the order of the schedule."""
        return iter(self.at(self.schedule))

    def at(self, schedule: Sequence[Position]) -> Sequence[Step]:
        """The steps of some updates; where images are drawn, put together when asked for."""
        return _Drawn(self, schedule) if self.inner else [self[position] for position in schedule]

    def for_each(self, networks: int) -> "Steps":
        """The same for each of J networks: (steps, J, images, …) and (epochs, steps, J).

        A step of it holds a copy for every network, and so does a gradient.
        """
        return replace(
            self,
            inputs=self.inputs.unsqueeze(1).expand(-1, networks, *self.inputs.shape[1:]),
            labels=self.labels.unsqueeze(1).expand(-1, networks, *self.labels.shape[1:]),
            learning_rates=self.learning_rates.unsqueeze(2).expand(-1, -1, networks),
            coefficients=_expanded(self.coefficients, networks),
        )

    def for_networks(self, seed: int, purpose: str, numbers: Sequence[int]) -> "Steps":
        """What some networks train on: the same steps for all, or images that each has drawn.

        Args:
            seed: With the purpose and a network's number, the stream that it draws by.
            purpose: What the networks are for.
            numbers: Their numbers.
        """
        if self.inner is None:
            return self
        total = self.inputs.shape[0] * self.inputs.shape[1]
        updates = self.learning_rates.shape[:2]
        drawn = [
            self.inner.draw(updates.numel(), total, stream(seed, f"images of {purpose}", number))
            for number in numbers
        ]
        place = torch.stack(drawn, 1).unflatten(0, updates).to(self.inputs.device)
        return replace(self.for_each(len(drawn)), drawn=place)

    def of_network(self, j: int) -> "Steps":
        """Those of one of the networks of :meth:`for_each`."""
        own = None if self.coefficients is None else self.coefficients[j]
        return Steps(self.inputs[:, j], self.labels[:, j], self.learning_rates[:, :, j], own)

    @classmethod
    def joined(cls, parts: Sequence["Steps"]) -> "Steps":
        """Those of all networks, from those of :meth:`for_each` for some at a time."""
        found = zip(*(one.tensors.values() for one in parts), strict=True)
        # Networks are axis 1 of inputs and labels, 2 of learning rates, 0 of coefficients.
        return cls(*(torch.cat(own, axis) for own, axis in zip(found, (1, 1, 2, 0), strict=False)))

    def to(self, device: torch.device, dtype: torch.dtype) -> "Steps":
        """Moves to a device; inputs, rates and float labels take the dtype."""
        labels, own = self.labels.to(device), self.coefficients
        return replace(
            self,
            inputs=self.inputs.to(device, dtype),
            labels=labels.to(dtype) if labels.is_floating_point() else labels,
            learning_rates=self.learning_rates.to(device, dtype),
            coefficients=own if own is None else own.to(device, dtype),
        )


class _Drawn(Sequence[Step]):
    """The steps of some updates whose images are drawn: they are copies, and so not kept."""

    def __init__(self, steps: Steps, schedule: Sequence[Position]) -> None:
        self._steps, self._schedule = steps, schedule

    def __len__(self) -> int:
        return len(self._schedule)

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Step]: ...
    def __getitem__(self, index: int | slice) -> Step | Sequence[Step]:
        if isinstance(index, slice):
            return _Drawn(self._steps, self._schedule[index])
        return self._steps[self._schedule[index]]


def _expanded(coefficients: Tensor | None, networks: int) -> Tensor | None:
    return None if coefficients is None else coefficients.expand(networks, -1)


def zeros_like(steps: Steps) -> Steps:
    """Steps of the same shapes, all 0: where gradients are summed up."""
    return replace(steps, **{name: torch.zeros_like(t) for name, t in steps.tensors.items()})


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
