"""Objectives: what the trained networks are judged by on real data."""

from abc import abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor

from ..seam import Seam


class Objective(Seam, seam="objective"):
    """The outer loss on real data, and the loss a learner descends on distilled data.

    Attributes:
        metric: What :meth:`score` measures.
        higher_is_better: Whether a higher metric is a better one.
        learns_labels: Whether distilled labels are learned unless said otherwise.
        has_classes: Whether labels are classes, of which real images can be drawn.
        attacks: Whether it makes networks misclassify a class; evaluation measures the attack.
        is_mean: Whether the outer loss is a mean over examples, so that they may be taken in
            parts. A class that writes a loss of its own must say so: it is not assumed.
    """

    metric: ClassVar[str]
    higher_is_better: ClassVar[bool]
    learns_labels: ClassVar[bool] = False
    has_classes: ClassVar[bool] = False
    attacks: ClassVar[bool] = False
    is_mean: ClassVar[bool] = False

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if {"inner_loss", "outer_loss"} & vars(cls).keys() and "is_mean" not in vars(cls):
            cls.is_mean = False

    @property
    def inner_is_mean(self) -> bool:
        """The same of the inner loss: what the class says that writes it."""
        writer = next(kind for kind in type(self).__mro__ if "inner_loss" in vars(kind))
        return bool(getattr(writer, "is_mean", False))

    @property
    def has_loss(self) -> bool:
        """Whether the outer loss is known: not where a file only names a function."""
        return True

    @abstractmethod
    def inner_loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """ℓ(x̃, θ): mean loss of one network on one step of distilled data."""

    def outer_loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """ℓ(x, θ_T): mean loss of one network on real data; the inner loss by default."""
        return self.inner_loss(outputs, labels)

    @abstractmethod
    def score(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """One figure per network and example, (…, N), whose mean is the metric."""

    @abstractmethod
    def check(self, outputs: torch.Size, labels: Tensor, complete: bool) -> None:
        """Refuses real labels that a network with such outputs cannot learn.

        Args:
            outputs: The shape of the network's output for one input.
            labels: The labels of real data.
            complete: Whether every class must have an example, as training data must.
        """

    @abstractmethod
    def start_labels(
        self, outputs: torch.Size, labels: Tensor, steps: int, images_per_class: int, seed: int
    ) -> Tensor:
        """The labels that distilled data start with, (steps, images, …)."""

    @abstractmethod
    def soft_labels(self, outputs: torch.Size, labels: Tensor) -> Tensor:
        """Distilled labels as floats, which can be learned."""

    def classes(self, outputs: torch.Size) -> int:
        """The number of classes of a network with such outputs; 0 without classes."""
        return 0
