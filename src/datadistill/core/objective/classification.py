"""Classification: cross-entropy over classes."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ...errors import DataError, ModelError
from ..distilled import class_labels
from .objective import Objective


@dataclass(frozen=True)
class Classification(Objective, name="classification"):
    """Cross-entropy over classes; over two classes if the network has a single output.

    Labels are class indices, or class probabilities as floats.
    """

    metric = "accuracy"
    higher_is_better = True
    has_classes = True
    is_mean = True

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
                f"Classification needs one integer label per example; these are "
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
                "Add examples, or number the classes from 0 without gaps and make the network "
                f"for {classes - len(missing)} classes.",
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
        """The number of classes of a network with such outputs."""
        if len(outputs) != 1:
            raise ModelError(
                f"The network's output for one input has shape {tuple(outputs)}.",
                "Classification needs one logit per class: shape (classes,).",
            )
        return max(outputs[0], 2)
