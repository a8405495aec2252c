"""Soft labels: class probabilities that are learned with the inputs."""

from dataclasses import dataclass

from .plain import Plain


@dataclass(frozen=True)
class SoftLabels(Plain, name="soft-labels"):
    """The plain parametrisation with labels that are learned; they start one-hot."""

    learn_labels: bool | None = True

    settings = {"learn_rates": "learn_rates"}
