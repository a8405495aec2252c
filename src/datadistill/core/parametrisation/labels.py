"""Distilled labels: how they are kept while they are learned."""

import torch
from torch import Tensor

from ...errors import ConfigError
from ..names import LabelKind
from ..objective import Objective

SMOOTHED = 0.1
"""Labels that are kept as logits start this far from one-hot, which no finite logits give."""


def start_of(kind: LabelKind, labels: Tensor, objective: Objective, outputs: torch.Size) -> Tensor:
    """What is learned of labels, or the labels themselves where they are not learned.

    Args:
        kind: How they are kept.
        labels: Class indices, class probabilities, or targets of a regression.
        objective: What the data are learned for.
        outputs: The shape of a network's output for one input.
    """
    probabilities = labels.is_floating_point() and objective.has_classes
    if kind == "hard":
        if probabilities:
            raise ConfigError(
                f"{labels.shape[:2].numel()} distilled images cannot have one label for each of "
                f"{objective.classes(outputs)} classes.",
                "Learn the labels too: set labels to soft. Or set more images_per_step or steps.",
            )
        return labels
    if not probabilities:
        labels = objective.soft_labels(outputs, labels.cpu())
    if kind != "soft" and not objective.has_classes:
        raise ConfigError(
            f"labels is {kind}, but the {objective.name} objective has no classes.",
            "Set labels to soft.",
        )
    if kind != "logits":
        return labels
    if outputs[0] == 1:  # the probability of the second of two classes
        return torch.special.logit(labels + SMOOTHED * (0.5 - labels))
    return torch.log(labels + SMOOTHED * (1 / outputs[0] - labels))


def labels_of(kind: LabelKind, learned: Tensor) -> Tensor:
    """The labels, from what is learned of them."""
    if kind != "logits":
        return learned
    return learned.softmax(-1) if learned.ndim > 2 else learned.sigmoid()  # a single output


def pulled_back(kind: LabelKind, learned: Tensor, gradient: Tensor) -> Tensor:
    """The gradient of what is learned of labels, from theirs."""
    if kind != "logits":
        return gradient
    p = labels_of(kind, learned)
    if learned.ndim == 2:
        return gradient * p * (1 - p)
    return p * (gradient - (p * gradient).sum(-1, keepdim=True))
