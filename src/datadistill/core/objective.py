"""Objectives: what the trained networks are judged by on real data."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from ..errors import DataError, ModelError
from .distilled import class_labels
from .random import stream


class Objective(ABC):
    """The outer loss on real data, and the loss a learner descends on distilled data.

    Attributes:
        name: What it is called in files and flags.
        metric: What :meth:`score` measures.
        higher_is_better: Whether a higher metric is a better one.
        learns_labels: Whether distilled labels are learned unless said otherwise.
        is_mean: Whether the outer loss is a mean over examples, so that they may be taken in parts.
    """

    name: ClassVar[str]
    metric: ClassVar[str]
    higher_is_better: ClassVar[bool]
    learns_labels: ClassVar[bool] = False
    is_mean: ClassVar[bool] = True

    @property
    def record(self) -> str:
        """What an artefact calls it: its name, with all that it depends on."""
        return self.name

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


@dataclass(frozen=True)
class Classification(Objective):
    """Cross-entropy over classes; over two classes if the network has a single output.

    Labels are class indices, or class probabilities as floats.
    """

    name = "classification"
    metric = "accuracy"
    higher_is_better = True

    def inner_loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        if outputs.shape[-1] == 1:
            target = labels.to(outputs.dtype).reshape(outputs.shape)
            return F.binary_cross_entropy_with_logits(outputs, target)
        return F.cross_entropy(outputs, labels)

    def score(self, outputs: Tensor, labels: Tensor) -> Tensor:
        return self.called(outputs) == labels

    def check(self, outputs: torch.Size, labels: Tensor, complete: bool) -> None:
        classes = self.classes(outputs)
        if labels.ndim != 1 or labels.is_floating_point():
            raise DataError(
                f"Classification needs one whole-number label per example; these are "
                f"{labels.dtype} of shape {tuple(labels.shape)}.",
                "Pass class indices, or use the regression objective.",
            )
        low, high = int(labels.min()), int(labels.max())
        if low < 0 or high >= classes:
            raise DataError(
                f"The labels run from {low} to {high}, but the network tells {classes} classes "
                f"apart: labels must be 0 to {classes - 1}.",
                "Number the classes from 0, or give the network more outputs.",
            )
        missing = (torch.bincount(labels, minlength=classes) == 0).nonzero().flatten().tolist()
        if complete and missing:
            raise DataError(
                f"The training data hold no example of class {', '.join(map(str, missing))}.",
                f"Add examples, or make the network for {classes - len(missing)} classes.",
            )

    def start_labels(
        self, outputs: torch.Size, labels: Tensor, steps: int, images_per_class: int, seed: int
    ) -> Tensor:
        return class_labels(steps, self.classes(outputs), images_per_class)

    def soft_labels(self, outputs: torch.Size, labels: Tensor) -> Tensor:
        return labels.float() if outputs[0] == 1 else torch.eye(outputs[0])[labels]

    def called(self, outputs: Tensor) -> Tensor:
        """The class that a network takes each example for, (…, N)."""
        return (outputs.squeeze(-1) > 0).long() if outputs.shape[-1] == 1 else outputs.argmax(-1)

    def classes(self, outputs: torch.Size) -> int:
        """How many classes a network with such outputs tells apart."""
        if len(outputs) != 1:
            raise ModelError(
                f"The network's output for one input has shape {tuple(outputs)}.",
                "Classification needs one logit per class: shape (classes,).",
            )
        return max(outputs[0], 2)


@dataclass(frozen=True)
class Regression(Objective):
    """Mean squared error. Distilled labels are targets, and are learned as well."""

    name = "regression"
    metric = "mean squared error"
    higher_is_better = False
    learns_labels = True

    def inner_loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        return F.mse_loss(outputs, labels.reshape(outputs.shape))

    def score(self, outputs: Tensor, labels: Tensor) -> Tensor:
        return (outputs - labels.reshape(outputs.shape[-2:])).square().mean(-1)

    def check(self, outputs: torch.Size, labels: Tensor, complete: bool) -> None:
        if len(outputs) != 1:
            raise ModelError(
                f"The network's output for one input has shape {tuple(outputs)}.",
                "Regression needs a row of numbers: shape (targets,).",
            )
        if not labels.is_floating_point() or labels[0].numel() != outputs.numel():
            raise DataError(
                f"The targets are {labels.dtype} of shape {tuple(labels.shape)}, but the network "
                f"gives {outputs.numel()} number(s) per example.",
                "Pass floating-point targets of shape (examples, outputs).",
            )
        if not torch.isfinite(labels).all():
            raise DataError(
                "The regression targets hold NaN or infinite values.", "Remove those examples."
            )

    def start_labels(
        self, outputs: torch.Size, labels: Tensor, steps: int, images_per_class: int, seed: int
    ) -> Tensor:
        """Noise with the mean and deviation of the real targets."""
        targets = labels.reshape(len(labels), -1).double()
        shape = (steps, images_per_class, outputs.numel())
        draw = torch.randn(shape, generator=stream(seed, "distilled labels"))
        return (targets.mean(0) + targets.std(0, correction=0) * draw).float()

    def soft_labels(self, outputs: torch.Size, labels: Tensor) -> Tensor:
        return labels
