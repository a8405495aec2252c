"""Regression: mean squared error."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ...errors import DataError, ModelError
from ..random import stream
from .objective import Objective


@dataclass(frozen=True)
class Regression(Objective, name="regression"):
    """Mean squared error. Distilled labels are targets, and are learned as well."""

    metric = "mean squared error"
    higher_is_better = False
    learns_labels = True
    is_mean = True

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
