"""Soft labels: class probabilities that are learned with the inputs."""

from dataclasses import dataclass
from types import MappingProxyType

from .plain import Plain


@dataclass(frozen=True)
class SoftLabels(Plain, name="soft-labels"):
    """The plain parametrisation with labels that are learned; they start one-hot."""

    learn_labels: bool | None = True

    settings = MappingProxyType({"learn_rates": "learn_rates"})
